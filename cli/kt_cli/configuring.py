"""What `kt agent config` and `kt config` have in common: `name` is an agent's, or None for what is set for all."""

from collections.abc import Sequence

import click

from kt_cli import completing, output, session, settings_view, table, terminal

key_argument = click.argument("key", shell_complete=completing.keys)
set_key_argument = click.argument("key", shell_complete=completing.set_keys)
optional_key = click.argument("key", required=False, shell_complete=completing.keys)
value_argument = click.argument(
    "value", nargs=-1, metavar="VALUE", type=click.UNPROCESSED, shell_complete=completing.values
)
reveal_option = click.option("--reveal", is_flag=True, help="Show secrets in the clear.")
source_option = click.option(
    "--source", is_flag=True, help="Show layer and file of each value, and the weaker values that it hides."
)
_FLAGS = ("--json", "--help", "-h")
AS_IT_IS = {"allow_interspersed_args": False}
"""A value that begins with a dash is no flag."""


@click.command("keys")
@output.json_option
def keys(*, as_json: bool) -> None:
    """List every key: its type, what it is unless set, and what it means.

    \b
    Example:
      kt config keys
    """
    from kt_manifest.configuration import options
    from kt_manifest.launch import inheritance

    if as_json:
        entries = [
            {
                "key": option.key,
                "type": option.type.name,
                "unit": option.unit or None,
                "wanted": option.type.wanted,
                "values": list(option.type.choices) or None,
                "default": option.default,
                "effect": str(option.effect),
                "meaning": option.help,
            }
            for option in options.OPTIONS
        ]
        output.document({"schema_version": 1, "keys": entries})
        return
    for option in options.OPTIONS:
        output.result(option.key)
        unless = "no default" if option.default is None else f"{option.default} unless set"
        told = [option.help, f"{option.type.wanted}; {option.effect}; {unless}"]
        if option.key == options.ENV_INHERIT:
            told.append(f"{inheritance.DEFAULTS}: {' '.join(inheritance.DEFAULT)}")
        for text in told:
            for line in table.wrap(text, terminal.width() - 4):
                output.result(f"    {line}")


def set_value(name: str | None, key: str, value: Sequence[str], *, as_json: bool) -> None:
    """Set one key and say what it is now."""
    wanted = _one(value, before="KEY" if name is None else "NAME")
    answer = session.client_about(name).config_set(name, key, wanted)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"{terminal.visible(key)} = {settings_view.shown(answer.get('value', wanted))}")
    if effect := answer.get("effect"):
        output.result(f"It takes effect {effect}.")


def get(name: str | None, key: str | None, *, reveal: bool, source: bool, as_json: bool) -> None:
    """Show the settings as a table, or one value alone; with `source`, where each comes from."""
    answer = session.client_about(name).config_get(name, key, reveal=reveal)
    output.notices(answer)
    settings_view.alarms(answer)
    if as_json:
        output.document(answer)
        return
    entries = answer["entries"]
    if not entries:
        output.result("Nothing is set for all agents." if name is None else f"{name} has no configuration.")
        verb = "kt config set" if name is None else f"kt agent config set {name}"
        output.note(f"set some: {verb} KEY VALUE")
    elif source:
        for line in settings_view.with_sources(entries):
            output.result(line)
    elif key is not None:
        value = settings_view.bare(entries[0]["value"])
        output.result(terminal.visible(value) if terminal.is_terminal() else value)
    else:
        output.result(settings_view.as_table(entries))


def unset(name: str | None, key: str, *, as_json: bool) -> None:
    """Forget one key."""
    answer = session.client_about(name).config_unset(name, key)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"{terminal.visible(key)} is no longer set.")
    if effect := answer.get("effect"):
        output.result(f"That takes effect {effect}.")


def edit(name: str | None) -> int:
    """Have the settings edited as a whole; return the exit code."""
    from kt_cli import editing
    from kt_client.errors import KtError
    from kt_ledger.exit_codes import WRONG_STATE

    verb = "kt config" if name is None else "kt agent config"
    editing.check_terminal(instead=f"`{verb} set`")
    client = session.client_about(name)
    was = client.config_text(name)["text"]
    begun = text = was or f"# KEY = value, one a line; `{verb} keys` lists the keys.\n"
    file_name = f"{name or 'kt'}.toml"
    while (edited := editing.edit(text, name=file_name)) != begun:
        try:
            answer = client.config_replace(name, edited, was=was)
        except KtError as error:
            output.note(f"kt: {error}")
            if not click.confirm("Edit it again?", default=True, err=True):
                output.result("Nothing was changed.")
                output.note(
                    f"What you wrote is in {terminal.visible(str(editing.keep(edited, name=file_name)))}"
                )
                return error.exit_code
            text, begun = edited, ""
            if error.exit_code == WRONG_STATE:
                was = client.config_text(name)["text"]  # told of: the next attempt takes its place
            continue
        output.notices(answer)
        changed = ", ".join(terminal.visible(key) for key in answer["changed"])
        output.result(f"Changed: {changed}." if changed else "No setting was changed.")
        return 0
    output.result("Nothing was changed.")
    return 0


def _one(value: Sequence[str], *, before: str) -> str:
    words = value[1:] if len(value) == 2 and value[0] == "--" else value
    if len(words) > 1 and words[-1] in _FLAGS:
        raise click.UsageError(f"got {words[-1]} behind VALUE, wanted it before {before}: flags go there")
    if len(words) != 1:
        got = "no VALUE" if not words else f"{len(words)} words"
        raise click.UsageError(f"got {got} after KEY, wanted one VALUE; quote one that has spaces")
    return words[0]
