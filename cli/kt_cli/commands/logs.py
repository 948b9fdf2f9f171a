"""`kt agent logs`: what an agent said, line by line."""

import base64
import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import click

from kt_cli import completing, environment, output, returning, session, terminal
from kt_cli.moments import Moment
from kt_client.errors import ENGINE_LOST, EngineAway, KtError
from kt_ledger import exit_codes
from kt_ledger.clock import SystemClock


@click.command()
@completing.name_argument
@click.option("--follow", "-f", "follow", is_flag=True, help="Go on until the agent ends.")
@click.option(
    "--since", "since_ns", type=Moment(), help="Lines since then: 10m, 14:30, 2026-01-31T14:30:00Z."
)
@click.option("--tail", type=click.IntRange(0, 10_000_000), metavar="N", help="Only the last N lines.")
@click.option(
    "--stream",
    "streams",
    type=click.Choice(["out", "err", "engine"]),
    multiple=True,
    help="Only this stream; may be given twice.",
)
@click.option("--run", metavar="ID", help="Only this run of the agent.")
@click.option(
    "--after", metavar="POSITION", help='Only what follows a position that --json printed as "position".'
)
@click.option("--precise", is_flag=True, help="Times with nanoseconds.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def logs(name: str, *, follow: bool, precise: bool, as_json: bool, **chosen: Any) -> None:
    """Print an agent's output: `time [stream] text`.

    On a terminal, control sequences in it are dropped (colours stay); in a pipe it arrives as the agent wrote it.

    \b
    Examples:
      kt agent logs bot --tail 20
      kt agent logs bot --since 10m --stream err
      kt agent logs bot -f | grep -i error
    """
    if chosen["after"] is not None and chosen["since_ns"] is not None:
        raise click.UsageError("got --after and --since, wanted one of them: both say where to begin")
    stamp = "at_exact" if precise else "at"
    query = {"follow": int(follow), "unfinished": int(not as_json and chosen["after"] is None)}
    query |= {field: value for field, value in chosen.items() if value not in (None, ())}
    for line in _lines(name, query):
        # Not click.echo: it takes escapes out of what goes into a pipe, and flushes each line.
        if as_json:
            sys.stdout.write(f"{json.dumps(line, ensure_ascii=False)}\n")
        else:
            _write(line, stamp)
        if follow:
            sys.stdout.flush()
    if follow:
        output.note(f"kt: {name} no longer runs; this was its output.")


def _lines(name: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines; a follower whose engine died goes on behind the last one once there is an engine again."""
    begun_ns, position = SystemClock().wall_ns(), None
    while True:
        try:
            watched = sys.stdout.fileno() if query["follow"] else None
            target = f"/logs?{urlencode(_target(query), doseq=True)}"
            for line in session.lines_about(name, target, reader=watched):
                yield line
                position = line.get("position", position)
            return
        except (KtError, EngineAway) as failure:
            lost = isinstance(failure, EngineAway) or failure.code == ENGINE_LOST
            if not lost:
                raise
            if not query["follow"]:
                raise _cut(name, position) from failure
        returning.wait(f"kt agent logs {name} -f" + (f" --after {position}" if position else ""))
        if position is not None:
            query = {**query, "after": position, "tail": None, "since_ns": None}
        elif query.get("tail") == 0:
            query = {
                **query,
                "tail": None,
                "since_ns": begun_ns,
            }  # what came while nobody answered counts as new


def _target(query: dict[str, Any]) -> dict[str, Any]:
    named = {"streams": "stream"}
    return {named.get(field, field): value for field, value in query.items() if value is not None}


def _cut(name: str, position: str | None) -> KtError:
    again = f"kt agent logs {name}" + (f" --after {position}" if position else "")
    return KtError(
        f"the engine went away, the agent need not have: got the log up to here, wanted all of it; ask again: {again}",
        exit_code=exit_codes.FAILED,
        code=ENGINE_LOST,
    )


def _write(line: dict[str, Any], stamp: str) -> None:
    head = f"{line.get(stamp, line['at'])} [{line['stream']}] "
    if terminal.is_terminal():
        text = terminal.log_line(_last_state(line["text"]), colour=environment.colour_wanted())
        sys.stdout.write(f"{head}{text}\n")
    elif "bytes" in line:
        sys.stdout.write(head)
        sys.stdout.flush()
        sys.stdout.buffer.write(base64.b64decode(line["bytes"]).removesuffix(b"\r") + b"\n")
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(f"{head}{line['text']}\n")


def _last_state(text: str) -> str:
    """Return what a line that was written over again and again (a progress bar) says in the end."""
    return text.rstrip("\r").rpartition("\r")[2]
