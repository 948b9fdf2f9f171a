"""`kt agent register`: judge the name and the adapter, and only then let anything come into being."""

from pathlib import Path
from typing import Any

import click

from kt_cli import completing, output, session, table, terminal


@click.command(context_settings={"allow_interspersed_args": True})
@click.argument("name")
@click.option("--kind", shell_complete=completing.builtin_kinds, help="A built-in kind: command or mock.")
@click.option(
    "--manifest", type=click.Path(path_type=Path), help="An adapter.toml, or the folder that holds one."
)
@click.option(
    "--adapter",
    "shipped",
    metavar="KIND",
    shell_complete=completing.shipped_kinds,
    help="An adapter that comes with kt (kt adapter list).",
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
    shipped: str | None,
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
      kt agent register bot --adapter openai-compatible
      kt agent register bot --kind command --observe -- python "$PWD/bot.py"
    """
    from kt_manifest.contract import names

    names.check(name)
    _want_one_of({"--kind": kind, "--manifest": manifest, "--adapter": shipped})
    of_command = interactive or observe or command
    if of_command and kind != "command":
        raise click.UsageError("--interactive, --observe and a command after -- go with --kind command only")
    if kind is not None:
        adapter = _builtin(kind, interactive=interactive, observe=observe, command=command)
    else:
        adapter = _from_a_file(manifest, shipped)
    answer = session.client().register(name, adapter=adapter.to_json())
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    _tell(name, adapter, answer)
    _next(name, adapter, _introduction(shipped))


def _want_one_of(ways: dict[str, object]) -> None:
    given = [way for way, value in ways.items() if value is not None]
    if len(given) != 1:
        got = " and ".join(given) or f"neither of {', '.join(ways)}"
        raise click.UsageError(f"got {got}; wanted exactly one of {', '.join(ways)}")


def _builtin(kind: str, *, interactive: bool, observe: bool, command: tuple[str, ...]) -> Any:
    from kt_manifest.contract import kinds

    if kind == kinds.COMMAND:
        return kinds.command(command, interactive=interactive, observe=observe, cwd=Path.cwd())
    return kinds.builtin(kind)


def _from_a_file(manifest: Path | None, kind: str | None) -> Any:
    from kt_manifest.contract import manifest as manifests
    from kt_manifest.contract import shipped

    return manifests.load(manifest) if manifest is not None else shipped.named(str(kind)).adapter


def _tell(name: str, adapter: Any, answer: Any) -> None:
    instance = answer.get("instance", answer) if isinstance(answer, dict) else {}
    output.result(f"Registered {name} (kind {adapter.kind}).")
    if home := instance.get("agent_home"):
        output.result(f"Agent Home: {terminal.visible(str(home))}")
    output.result("")
    output.result(capabilities(name, adapter.declaration))


def _introduction(kind: str | None) -> tuple[str, ...]:
    """Return what a shipped adapter says at its head, nothing of any other."""
    from kt_manifest.contract import shipped

    return () if kind is None else tuple(shipped.named(kind).introduction)


def _next(name: str, adapter: Any, introduction: tuple[str, ...]) -> None:
    if introduction:
        for line in introduction:
            output.note(line.replace(" NAME ", f" {name} "))
        output.note(f"Next: kt agent start {name}")
    elif adapter.start is None:
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
