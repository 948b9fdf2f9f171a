"""`kt agent config`: read and change an agent's configuration."""

from collections.abc import Sequence
from typing import Any

import click

from kt_cli import figures, output, session, table, terminal


@click.group(no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Read and change an agent's configuration.

    \b
    Example:
      kt agent config set bot metering.upstream_base_url https://api.openai.com/v1
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@config.command("set", context_settings={"allow_interspersed_args": False})
@output.json_option
@click.argument("name")
@click.argument("key")
@click.argument("value", nargs=-1, type=click.UNPROCESSED)
def set_value(name: str, key: str, value: tuple[str, ...], *, as_json: bool) -> None:
    """Set KEY to VALUE. A VALUE that begins with a dash is taken as it is; flags go before NAME.

    \b
    Examples:
      kt agent config set bot model gpt-4o-mini
      kt agent config set bot agent.VERBOSITY -1
      kt agent config set bot metering.upstream_api_key secret:OPENAI_API_KEY
    """
    wanted = _one(value)
    answer = session.client_for(name).config_set(name, key, wanted)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"{terminal.visible(key)} = {_shown(answer.get('value', wanted))}")


@config.command("get")
@click.argument("name")
@click.argument("key", required=False)
@click.option("--reveal", is_flag=True, help="Show secrets in the clear.")
@output.json_option
def get(name: str, key: str | None, *, reveal: bool, as_json: bool) -> None:
    """Show the configuration that is in effect, and where each value comes from.

    \b
    Examples:
      kt agent config get bot
      kt agent config get bot model --json
    """
    answer = session.client_for(name).config_get(name, key, reveal=reveal)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    if not answer["entries"]:
        output.result(f"{name} has no configuration.")
        output.note(f"set some: kt agent config set {name} KEY VALUE")
        return
    rows = [_row(entry) for entry in answer["entries"]]
    output.result(table.render(("Key", "Value", "Validated", "Source"), rows, width=terminal.width()))


@config.command("keys")
@output.json_option
def keys(*, as_json: bool) -> None:
    """List every key: its type, what it is unless set, and what it means.

    \b
    Example:
      kt agent config keys
    """
    from kt_manifest.configuration import options

    rows = [
        (option.key, option.type.wanted, option.default, str(option.effect), option.help)
        for option in options.OPTIONS
    ]
    if as_json:
        fields = ("key", "wanted", "default", "effect", "meaning")
        entries = [dict(zip(fields, row, strict=True)) for row in rows]
        output.document({"schema_version": 1, "keys": entries})
        return
    for key, wanted, default, effect, meaning in rows:
        output.result(f"{key}")
        unless = "unset" if default is None else default
        for text in (meaning, f"{wanted}; {effect}; {unless} unless set"):
            for line in table.wrap(text, terminal.width() - 4):
                output.result(f"    {line}")


@config.command("unset")
@click.argument("name")
@click.argument("key")
@output.json_option
def unset(name: str, key: str, *, as_json: bool) -> None:
    """Forget what was set for KEY.

    \b
    Example:
      kt agent config unset bot model
    """
    answer = session.client_for(name).config_unset(name, key)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"{terminal.visible(key)} is no longer set.")


def _one(value: Sequence[str]) -> str:
    words = value[1:] if len(value) == 2 and value[0] == "--" else value
    if len(words) != 1:
        got = "no VALUE" if not words else f"{len(words)} words"
        raise click.UsageError(f"got {got} after KEY, wanted one VALUE; quote one that has spaces")
    return words[0]


def _row(entry: dict[str, Any]) -> list[str]:
    validated = "no" if entry.get("unvalidated") else "yes"
    return [entry["key"], _shown(entry["value"]), validated, str(entry.get("source", figures.ABSENT))]


def _shown(value: Any) -> str:
    import json

    return terminal.visible(value if isinstance(value, str) else json.dumps(value))
