"""`kt agent logs`: what an agent said, line by line."""

import json
import sys
from typing import Any

import click

from kt_cli import environment, output, session, terminal


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
    lines = session.lines_about(name, f"/logs?follow={int(follow)}")
    for line in lines:
        # Not click.echo: it takes escapes out of what goes into a pipe, and flushes each line.
        sys.stdout.write(f"{json.dumps(line, ensure_ascii=False) if as_json else _text(line)}\n")
        if follow:
            sys.stdout.flush()
    if follow:
        output.note(f"kt: {name} no longer runs; this was its output.")


def _text(line: dict[str, Any]) -> str:
    text = str(line["text"]).removesuffix("\n")
    if terminal.is_terminal():
        text = terminal.log_line(text, colour=environment.colour_wanted())
    return f"{line['at']} [{line['stream']}] {text}"
