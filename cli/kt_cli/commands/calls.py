"""`kt agent calls`: the calls of one agent to a model, one by one, as the gateway saw them."""

import json
from typing import Any

import click

from kt_cli import completing, figures, following, output, session, table, terminal

DEFAULT_LIMIT = 20
MAX_LIMIT = 100_000
MOST_FOLLOWED = 200
FORGET_AT = 1000
TITLES = ("Model", "Status", "Usage", "Input", "Output", "Time")
WIDTHS = (24, 6, 24, 9, 9, 9)
"""The columns of a follower, who prints each line before the next one is known."""


@click.command()
@completing.name_argument
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="At most so many, the latest.",
)
@click.option("--follow", "-f", "follow", is_flag=True, help="Go on with each call that ends, until Ctrl-C.")
@output.json_option
def calls(name: str, *, limit: int, follow: bool, as_json: bool) -> None:
    """List an agent's calls to its model, the latest last.

    Usage is exact, or says why it is not. A follower gets each call once, when it has ended; as JSON one object a line.

    \b
    Examples:
      kt agent calls bot
      kt agent calls bot --limit 1000 --json
      kt agent calls bot -f
    """
    if follow:
        _follow(name, min(limit, MOST_FOLLOWED), as_json=as_json)
        return
    answer = session.client_for(name).calls(name, limit=limit)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    if not answer["exchanges"]:
        output.result(f"No calls of {name} were seen.")
        return
    output.result(table.render(TITLES, [_row(call) for call in answer["exchanges"]], width=terminal.width()))


def _follow(name: str, limit: int, *, as_json: bool) -> None:
    if not as_json:
        output.line(_line(TITLES))
    progress = _Progress(limit)
    for call in following.about(name, progress.target):
        if not progress.is_news(call):
            continue
        output.line(json.dumps(call, ensure_ascii=False) if as_json else _line(_row(call)))
    output.note(f"kt: {name} was removed, or the engine was stopped; these were its calls.")


class _Progress:
    """What of an agent's calls was shown: each once, as it ends, over any number of engines.

    Calls end in another order than they began. A new engine is asked for what lies behind the first call that is not
    over yet, and what was shown of that is passed over.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._under_way: set[int] = set()
        self._shown: set[int] = set()
        self._highest: int | None = None
        self._repeated_to = 0

    def target(self) -> str:
        """Return what to ask the next engine for."""
        if self._highest is None:
            return f"/exchanges?follow=1&limit={self._limit}"
        self._repeated_to = self._highest
        return f"/exchanges?follow=1&after={self._first_open() - 1}"

    def is_news(self, call: dict[str, Any]) -> bool:
        """Tell whether a call has ended and was not shown before."""
        seq = int(call["seq"])
        self._highest = max(self._highest or 0, seq)
        if call["state"] == "in_flight":
            self._under_way.add(seq)
            return False
        self._under_way.discard(seq)
        is_new = seq not in self._shown
        self._shown.add(seq)
        if seq > self._repeated_to and len(self._shown) > FORGET_AT:
            first = self._first_open()
            self._shown = {number for number in self._shown if number >= first}
        return is_new

    def _first_open(self) -> int:
        return min(self._under_way, default=(self._highest or 0) + 1)


def _line(cells: Any) -> str:
    texts = [cell.text if isinstance(cell, table.Cell) else str(cell) for cell in cells]
    shown = [terminal.visible(text) for text in texts]
    return "  ".join(text.ljust(width) for text, width in zip(shown, WIDTHS, strict=True)).rstrip()


def _row(call: dict[str, Any]) -> list[str | table.Cell]:
    return [
        str(call.get("model_answered") or call.get("model_asked") or figures.ABSENT),
        figures.ABSENT if call.get("status") is None else str(call["status"]),
        _usage(call),
        figures.grouped(call.get("input_tokens")),
        figures.grouped(call.get("output_tokens")),
        _duration(call.get("latency_ns")),
    ]


def _usage(call: dict[str, Any]) -> table.Cell:
    if call.get("state") == "in_flight":
        return table.Cell("under way", "yellow")
    if call.get("sent") == "no":
        return table.Cell(f"never left: {call.get('reason')}", "dim")
    found = str(call.get("completeness") or "unknown")
    if found == "exact":
        return table.Cell(found)
    return table.Cell(f"{found}: {call.get('reason')}", "yellow")


def _duration(nanoseconds: int | None) -> str:
    return figures.ABSENT if nanoseconds is None else f"{nanoseconds / 1e9:.2f} s"
