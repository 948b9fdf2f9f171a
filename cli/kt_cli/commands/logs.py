"""`kt agent logs`: what an agent said, line by line."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from kt_cli import environment, exit_codes, output, session, terminal
from kt_cli.failure import Failure
from kt_cli.link import ENGINE_LOST


@click.command()
@click.argument("name")
@click.option("--follow", "-f", "follow", is_flag=True, help="Go on until the agent ends.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def logs(name: str, *, follow: bool, as_json: bool) -> None:
    """Print an agent's output: `time [stream] text`.

    On a terminal, control sequences in it are dropped (colours stay); in a pipe it arrives as the agent wrote it.

    \b
    Examples:
      kt agent logs bot
      kt agent logs bot -f | grep -i error
    """
    for line in _lines(name, follow):
        # Not click.echo: it takes escapes out of what goes into a pipe, and flushes each line.
        sys.stdout.write(f"{json.dumps(line, ensure_ascii=False) if as_json else _text(line)}\n")
        if follow:
            sys.stdout.flush()
    if follow:
        output.note(f"kt: {name} no longer runs; this was its output.")


def _lines(name: str, follow: bool) -> Iterator[dict[str, Any]]:
    try:
        yield from session.lines_about(name, f"/logs?follow={int(follow)}")
    except Failure as failure:
        if failure.code != ENGINE_LOST:
            raise
        raise Failure(
            f"the engine went away, the agent need not have: got the log up to here, wanted all of it; "
            f"ask again: kt agent logs {name}",
            exit_code=exit_codes.FAILED,
            code=ENGINE_LOST,
        ) from failure


def _text(line: dict[str, Any]) -> str:
    text = str(line["text"]).removesuffix("\n")
    if terminal.is_terminal():
        text = terminal.log_line(text, colour=environment.colour_wanted())
    return f"{line['at']} [{line['stream']}] {text}"
