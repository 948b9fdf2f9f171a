"""`kt agent register`: judge the name and the adapter, and only then let anything come into being."""

from pathlib import Path
from typing import Any

import click

from kt_cli import output, session, table, terminal


@click.command(context_settings={"allow_interspersed_args": True})
@click.argument("name")
@click.option("--kind", help="A built-in kind: command or mock.")
@click.option(
    "--manifest", type=click.Path(path_type=Path), help="An adapter.toml, or the folder that holds one."
)
@click.option("--interactive", is_flag=True, help="With --kind command: it reads its standard input.")
@click.option(
    "--observe", is_flag=True, help="With --kind command: meter its traffic; else it reports by itself."
)
@output.json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- PROGRAM ARGUMENTS...]")
def register(
    name: str,
    *,
    kind: str | None,
    manifest: Path | None,
    interactive: bool,
    observe: bool,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Register an agent under a NAME of its own.

    Everything is validated before anything is written: a refused registration leaves no trace.

    \b
    Examples:
      kt agent register bot --manifest ./my-agent
      kt agent register bot --kind command --observe -- python "$PWD/bot.py"
    """
    from kt_manifest.contract import names

    names.check(name)
    adapter = _adapter(kind, manifest, interactive=interactive, observe=observe, command=command)
    answer = session.client().register(name, adapter=adapter.to_json())
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    _tell(name, adapter, answer)


def _adapter(
    kind: str | None, manifest: Path | None, *, interactive: bool, observe: bool, command: tuple[str, ...]
) -> Any:
    from kt_manifest.contract import kinds
    from kt_manifest.contract import manifest as manifests

    if (kind is None) == (manifest is None):
        raise click.UsageError(
            "got "
            + ("neither --kind nor --manifest" if kind is None else "both --kind and --manifest")
            + "; "
            "wanted exactly one of them"
        )
    if kind == kinds.COMMAND:
        return kinds.command(command, interactive=interactive, observe=observe, cwd=Path.cwd())
    if interactive or observe or command:
        raise click.UsageError("--interactive, --observe and a command after -- go with --kind command only")
    return manifests.load(manifest) if manifest is not None else kinds.builtin(str(kind))


def _tell(name: str, adapter: Any, answer: Any) -> None:
    instance = answer.get("instance", answer) if isinstance(answer, dict) else {}
    output.result(f"Registered {name} (kind {adapter.kind}).")
    if home := instance.get("agent_home"):
        output.result(f"Agent Home: {terminal.visible(str(home))}")
    output.result("")
    output.result(capabilities(name, adapter.declaration))
    if adapter.start is None:
        output.note(f"kind {adapter.kind} launches nothing: it is there to be looked at")
    elif adapter.metering_source == "engine-observed":
        output.note(f"Next: kt agent config set {name} metering.upstream_base_url URL-OF-THE-PROVIDER")
    else:
        output.note(f"Next: kt agent start {name}")


def capabilities(name: str, declaration: Any) -> str:
    """Return the table of what this agent can do on the system that kt runs on."""
    from kt_manifest.contract import capability

    system = capability.this_os()
    levels = capability.project(declaration, system)
    rows = [(word, str(level)) for word, level in levels.items()]
    title = f"Capabilities for {name} (OS: {system})"
    return f"{title}\n{table.render(['Capability', 'Support (current OS)'], rows, width=terminal.width())}"
