"""`kt secret`: keep, list and forget what `secret:NAME` stands for; works with and without an engine.

A value comes from standard input or from a prompt, never from an argument, and is printed nowhere.
"""

import sys
from typing import Any

import click

from kt_cli import environment, figures, output, session, table, terminal
from kt_ledger import exit_codes

MOST_BYTES = 4 << 20
"""How much is read before it is said that this is no secret."""


@click.group(no_args_is_help=False, invoke_without_command=True)
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
            f"input: kt secret set {terminal.visible(name)} < FILE; count the one that was typed as known to others"
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
    facts: dict[str, Any] = {"name": name, "place": place, "replaced": replaced, "rekeyed": told["rekeyed"]}
    _tell({**facts, "notices": told["notices"]}, as_json=as_json)
    if not as_json:
        output.result(f"{'Replaced' if replaced else 'Kept'} {terminal.visible(name)} in {place}.")
        for agent in told["rekeyed"]:
            output.result(f"{agent}: its calls carry the new key from now on.")


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
@click.argument("name")
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
            ", ".join(found["found_in"]) or ("missing" if found["missing"] else figures.ABSENT),
            ", ".join(agent["name"] for agent in found["agents"]) or figures.ABSENT,
        )
        for found in secrets
    ]


def _tell(answer: dict[str, Any], *, as_json: bool) -> None:
    output.notices(answer)
    if as_json:
        output.document({"schema_version": 1, **answer})
