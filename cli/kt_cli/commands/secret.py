"""`kt secret`: keep, list and forget what `secret:NAME` stands for; works with and without an engine.

A value comes from standard input or from a prompt, never from an argument, and is printed nowhere.
"""

import sys
from typing import Any

import click

from kt_cli import completing, environment, figures, output, session, table, terminal
from kt_cli.lazy_group import WholeGroup
from kt_ledger import exit_codes

MOST_BYTES = 4 << 20
"""How much is read before it is said that this is no secret."""


@click.group(cls=WholeGroup, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def secret(ctx: click.Context) -> None:
    """Keep the secrets that settings refer to as secret:NAME.

    \b
    Example:
      kt secret set OPENAI_API_KEY
      kt agent config set bot metering.upstream_api_key secret:OPENAI_API_KEY
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@secret.command("set")
@click.argument("name")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.option("--keyring", "in_keyring", is_flag=True, help="Keep it in the keyring of the operating system.")
@output.json_option
def set_secret(name: str, rest: tuple[str, ...], *, in_keyring: bool, as_json: bool) -> None:
    """Keep a secret: its value is read from standard input, or asked for on a terminal.

    It stands in secrets.toml in the state directory (0600), or in the keyring. Agents get it at their next start; a
    provider's key that the gateway puts in is replaced at once.

    \b
    Examples:
      kt secret set OPENAI_API_KEY
      pass show openai | kt secret set OPENAI_API_KEY
      kt secret set OPENAI_API_KEY --keyring < key.txt
    """
    from kt_manifest.configuration import keychain, secrets_file

    if rest:
        raise click.UsageError(
            "got a value on the command line, where other users and the shell's history see it, wanted it on standard "
            f"input: kt secret set {terminal.visible(name)} < FILE; what was typed counts as leaked: replace it"
        )
    secrets_file.check_name(name)
    value = _value(name)
    secrets_file.check_value(name, value)
    files = environment.state()
    if in_keyring:
        replaced = keychain.set(name, value)
    else:
        environment.make_state()
        replaced = secrets_file.set(files.secrets, name, value)
    place = "the keyring" if in_keyring else files.secrets.name
    told = _changed(name)
    if in_keyring and secrets_file.entries(files.secrets).get(name) is not None:
        told["notices"].append(f"{name} stands in {files.secrets.name} as well, which comes first")
    told["notices"] += _of_this_shell(name, value)
    later = _at_next_start(name, told["rekeyed"])
    facts: dict[str, Any] = {"name": name, "place": place, "replaced": replaced, "rekeyed": told["rekeyed"]}
    facts["at_next_start"] = later
    _tell({**facts, "notices": told["notices"]}, as_json=as_json)
    if not as_json:
        output.result(f"{'Replaced' if replaced else 'Kept'} {terminal.visible(name)} in {place}.")
        for agent in told["rekeyed"]:
            output.result(f"{agent}: its calls carry the new key from now on.")
        for agent in later:
            output.result(_later(agent, rekeyed=agent in told["rekeyed"]))


@secret.command("list")
@output.json_option
def list_secrets(*, as_json: bool) -> None:
    """List the secrets by name: where each is found from here, and which agents refer to it. No value is shown.

    The keyring is asked for the names that settings refer to; what else it holds cannot be listed.

    \b
    Examples:
      kt secret list
      kt secret list --json
    """
    from kt_cli import secret_places

    found = secret_places.look(environment.state(), environment.caller(), registered=_registered())
    if as_json:
        output.document({"schema_version": 1, **found})
        return
    for notice in found["notices"]:
        output.note(f"kt: {notice}")
    if not found["secrets"]:
        output.result("There are no secrets, and no agent refers to one.")
        output.note("keep one: kt secret set NAME")
        return
    output.result(
        table.render(("Name", "Found in", "Used by"), _rows(found["secrets"]), width=terminal.width())
    )


@secret.command("rm")
@click.argument("name", shell_complete=completing.secret_names)
@click.option(
    "--keyring", "in_keyring", is_flag=True, help="Remove it from the keyring of the operating system."
)
@output.json_option
def remove(name: str, *, in_keyring: bool, as_json: bool) -> None:
    """Forget a secret. Agents that run keep what they have until their next start, and are named.

    A provider's key that the gateway puts in is replaced at once where the name
    stands for another one elsewhere, in the keyring for instance.

    \b
    Example:
      kt secret rm OPENAI_API_KEY
    """
    from kt_cli import secret_places
    from kt_manifest.configuration import keychain, secrets_file

    files = environment.state()
    place = "the keyring" if in_keyring else files.secrets.name
    there = keychain.remove(name) if in_keyring else secrets_file.remove(files.secrets, name)
    if not there:
        raise NoSuchSecret(name, place)
    users = secret_places.users(files, registered=_registered()).get(name, [])
    notices = [f"{agent['name']} refers to it: {', '.join(agent['keys'])}" for agent in users]
    told = _changed(name)
    facts: dict[str, Any] = {"name": name, "place": place, "removed": True}
    facts |= {"rekeyed": told["rekeyed"], "keeping": told["keeping"]}
    _tell({**facts, "notices": notices + told["notices"]}, as_json=as_json)
    if not as_json:
        output.result(f"Removed {terminal.visible(name)} from {place}.")
        for agent in told["rekeyed"]:
            output.result(f"{agent}: its calls carry what the name stands for elsewhere from now on.")


class NoSuchSecret(Exception):
    """There is no secret of this name in this place."""

    exit_code = exit_codes.NOT_FOUND

    def __init__(self, name: str, place: str) -> None:
        super().__init__(
            f"no secret {terminal.visible(name)} in {place}: wanted one that is there; `kt secret list` names them"
        )


def _value(name: str) -> str:
    from kt_manifest.configuration.secrets_file import SecretInvalid

    if sys.stdin is not None and sys.stdin.isatty():
        asked: str = click.prompt(f"Value of {terminal.visible(name)}", hide_input=True, err=True)
        return asked
    data = sys.stdin.buffer.read(MOST_BYTES) if hasattr(sys.stdin, "buffer") else b""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise SecretInvalid(
            "bytes that are no UTF-8", wanted="text", do="give the key as its provider shows it"
        ) from None
    value = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    if value != text:
        output.note("kt: the newline at the end of the input is not part of the value")
    return value


def _of_this_shell(name: str, value: str) -> list[str]:
    """Say that each start from this shell takes another value than the one that was just kept."""
    if environment.caller().get(name) in (None, "", value):
        return []
    shown = terminal.visible(name)
    return [
        f"the variable {shown} of this shell has another value, which wins at each start from here; to use the "
        f"kept one: unset {shown}"
    ]


def _at_next_start(name: str, rekeyed: list[str]) -> list[str]:
    """Return whose settings refer to a secret in a way that nobody could follow at once."""
    from kt_cli import secret_places
    from kt_manifest.configuration import options

    users = secret_places.users(environment.state(), registered=_registered()).get(name, [])
    return [
        str(agent["name"])
        for agent in users
        if agent["name"] not in rekeyed or set(agent["keys"]) != {options.UPSTREAM_API_KEY}
    ]


def _later(agent: str, *, rekeyed: bool) -> str:
    from kt_cli import secret_places

    if agent == secret_places.FLEET:
        return "all other agents (it is set for all of them): at their next start."
    return f"{agent}: at its next start{' in its other settings' if rekeyed else ''}."


def _changed(name: str) -> dict[str, Any]:
    """Tell an engine that runs; what it cannot do now is a notice, since the secret is kept."""
    from kt_client.blocking import Client
    from kt_client.errors import KtError

    try:
        told = Client(environment.state().root, start_engine=False).secrets_changed(name)
    except KtError as error:
        notice = f"agents that run keep the key that they have: {error}"
        return {"rekeyed": [], "keeping": [], "notices": [notice]}
    return {part: list(told.get(part, ())) for part in ("rekeyed", "keeping", "notices")}


def _registered() -> frozenset[str] | None:
    """Return the names that are registered, as far as an engine that runs says so; None where none does."""
    from kt_client.blocking import Client
    from kt_client.errors import KtError

    if session.is_unused(environment.state()):
        return None
    try:
        fleet = Client(environment.state().root, start_engine=False).list()
    except KtError:
        return None
    return frozenset(str(entry["name"]) for entry in fleet["instances"])


def _rows(secrets: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (
            terminal.visible(found["name"]),
            _found(found),
            ", ".join(agent["name"] for agent in found["agents"]) or figures.ABSENT,
        )
        for found in secrets
    ]


def _found(secret: dict[str, Any]) -> str:
    """Return where a secret is, the place that wins first; where the values differ, that is said."""
    places = list(secret["found_in"])
    if not places:
        return "missing" if secret["missing"] else figures.ABSENT
    if secret["differ"]:
        places[0] += " (wins: the values differ)"
    return ", ".join(places)


def _tell(answer: dict[str, Any], *, as_json: bool) -> None:
    output.notices(answer)
    if as_json:
        output.document({"schema_version": 1, **answer})
