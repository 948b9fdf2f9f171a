"""`kt agent attach`: an agent's output as it comes, and lines to it, until you leave or it ends."""

import contextlib
import re

import click

from kt_cli import completing, output, session
from kt_client.errors import ENGINE_LOST, EngineAway, KtError
from kt_ledger import exit_codes


class Key(click.ParamType[bytes]):
    """A key that a terminal sends as one control character."""

    name = "key"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        """Return the character that Ctrl and this key make (ASCII: the letter's code without its upper bits)."""
        if isinstance(value, bytes):
            return value
        found = re.fullmatch(r"(?i:ctrl-|\^)([A-Za-z\]\\^_])", str(value))
        made = bytes([ord(found[1].upper()) & 0x1F]) if found else b""
        if made in (b"", b"\n", b"\r", b"\x03", b"\x04"):
            self.fail(
                f"got {str(value)[:20]!r}, wanted ctrl-] or ctrl- and a letter other than c, d, j and m",
                param,
                ctx,
            )
        return made


@click.command()
@completing.name_argument
@click.option(
    "--tail",
    type=click.IntRange(0, 10_000),
    default=10,
    show_default=True,
    help="Begin with so many last lines.",
)
@click.option(
    "--detach-key", "key", type=Key(), default="ctrl-]", show_default=True, help="The key that leaves."
)
def attach(name: str, *, tail: int, key: bytes) -> None:
    """Watch an agent and type lines to it. Leaving it, in whatever way, changes nothing for the agent.

    Ctrl-] leaves; so do Ctrl-D and Ctrl-C. There is no terminal on the agent's side: lines go to its standard input,
    its size is nobody's, and what it prints on both streams comes as one. Without a terminal this is a filter.

    \b
    Examples:
      kt agent attach bot
      echo status | kt agent attach bot | head -3
    """
    from kt_cli import attachment

    connection, headers, first = session.upgrade_about(name, f"/attach?tail={tail}")
    with connection:
        if attachment.is_terminal():
            output.note(f"kt: attached to {name}; Ctrl-{chr(key[0] | 0x40)} leaves, the agent goes on.")
        if headers.get("kt-input") == "no":
            output.note(f"kt: {name} declares no interaction: what you type is not passed on.")
        how = attachment.converse(connection, first, key=key)
    if how == attachment.LEFT:
        output.note(f"\nkt: left {name}; it goes on.")
        return
    output.note(_ended(name))


def _ended(name: str) -> str:
    """Return what became of the agent; the stream alone cannot say. Raises KtError where nobody can."""
    state = None
    with contextlib.suppress(EngineAway, KtError):  # whatever it is, the stream broke off
        state = session.state_of(name)
    if state in (None, "running", "paused"):
        raise KtError(
            f"the stream broke off, the agent need not have ended: its engine went away, or it was started anew; "
            f"attach again: kt agent attach {name}",
            exit_code=exit_codes.FAILED,
            code=ENGINE_LOST,
        )
    return f"kt: {name} has ended: its state is {state}."
