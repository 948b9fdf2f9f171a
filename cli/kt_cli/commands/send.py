"""`kt agent send`: a message to an agent's standard input, or to the address that its manifest names."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kt_cli import output, session
from kt_client.errors import KtError
from kt_ledger import exit_codes

USAGE = "wanted: kt agent send NAME TEXT... | --file PATH | -   (with --eof: and end its input)"


class Literal(click.Command):
    """A command whose words are taken as they are: a message may look like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave everything to the command; help is for whoever names no agent."""
        if args[:1] in ([], ["--help"], ["-h"]):
            click.echo(self.get_help(ctx))
            ctx.exit(exit_codes.DONE if args else exit_codes.USAGE)
        ctx.params = {"words": tuple(args)}
        return []


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be sent to whom; `message` None for nothing."""

    name: str
    message: bytes | None
    eof: bool
    as_json: bool


@click.command(cls=Literal)
def send(*, words: tuple[str, ...]) -> None:
    """Send one message to an agent; a newline is added where it ends without one.

    \b
      kt agent send NAME [--json] TEXT... [--eof]
      kt agent send NAME [--json] --file PATH [--eof]
      kt agent send NAME [--json] - [--eof]          (from standard input)
      kt agent send NAME --eof                       (only end its input)

    TEXT is taken as it is, also where it begins with a dash; after -- also where it is --eof, --file or --json.
    "Sent" means that the agent's pipe took it within five seconds, not that the agent has read it.

    \b
    Examples:
      kt agent send bot hello there
      git diff | kt agent send bot -
    """
    wanted = understood(words)
    answer: dict[str, Any] = {}
    client = session.client_for(wanted.name)
    if wanted.message is not None:
        answer = client.send(wanted.name, wanted.message.decode("utf-8", "surrogateescape"))
    if wanted.eof:
        answer |= client.eof(wanted.name)
    output.notices(answer)
    if wanted.as_json:
        output.document(answer)
        return
    if wanted.message is not None:
        output.result(f"Sent {answer['bytes']} bytes to {wanted.name}.")
    if wanted.eof:
        output.result(f"The input of {wanted.name} has ended.")


def understood(words: tuple[str, ...]) -> Wanted:
    """Return what the words ask for; reads the message where it comes from elsewhere."""
    name, *rest = words
    eof = as_json = False
    path: str | None = None
    while rest and rest[0] in ("--eof", "--json", "--file"):
        flag = rest.pop(0)
        eof, as_json = eof or flag == "--eof", as_json or flag == "--json"
        if flag == "--file":
            if not rest:
                raise click.UsageError(f"got --file without a path; {USAGE}")
            path = rest.pop(0)
    literal = rest[:1] == ["--"]
    if literal:
        rest.pop(0)
    elif rest[-1:] == ["--eof"]:
        eof = True
        rest.pop()
    if path is not None and rest:
        raise click.UsageError(f"got both a file and a text; {USAGE}")
    message = _read(path) if path is not None else _text(rest, literal=literal)
    if message is None and not eof:
        raise click.UsageError(f"got nothing to send; {USAGE}")
    return Wanted(name, message, eof, as_json)


def _text(rest: list[str], *, literal: bool) -> bytes | None:
    if rest == ["-"] and not literal:
        return sys.stdin.buffer.read()
    return " ".join(rest).encode("utf-8", "surrogateescape") if rest else None


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise KtError(
            f"cannot read {path}: got {error.strerror or error}, wanted a file to send",
            exit_code=exit_codes.FAILED,
        ) from error
