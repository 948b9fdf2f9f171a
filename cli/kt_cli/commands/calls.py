"""`kt agent calls`: the calls of one agent to a model, one by one, as the gateway saw them."""

from typing import Any

import click

from kt_cli import figures, output, session, table, terminal

DEFAULT_LIMIT = 20
MAX_LIMIT = 100_000
TITLES = ("Model", "Status", "Usage", "Input", "Output", "Time")


@click.command()
@click.argument("name")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="At most so many, the latest.",
)
@output.json_option
def calls(name: str, *, limit: int, as_json: bool) -> None:
    """List an agent's calls to its model, the latest last.

    Usage is exact, or says why it is not.

    \b
    Examples:
      kt agent calls bot
      kt agent calls bot --limit 1000 --json
    """
    answer = session.client_for(name).calls(name, limit=limit)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    if not answer["exchanges"]:
        output.result(f"No calls of {name} were seen.")
        return
    output.result(table.render(TITLES, [_row(call) for call in answer["exchanges"]], width=terminal.width()))


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
