"""`kt agent list`: the whole fleet at a glance. The fast path: nothing slow is imported here."""

from typing import Any

import click

from kt_cli import figures, machine_figures, output, session, table, terminal
from kt_client.verbs import EMPTY_FLEET as EMPTY_FLEET

TITLES = (
    "Name",
    "Kind",
    "State",
    "Restarts",
    "Usage (tok, est.\N{NO-BREAK SPACE}$)",
    "CPU, memory",
)
BUDGET = "Budget (tok, est.\N{NO-BREAK SPACE}$)"
"""A column that is there once any agent has one."""
STATE_COLOURS = {
    "running": "green",
    "failed": "red",
    "paused": "yellow",
    "starting": "yellow",
    "stopping": "yellow",
}


@click.command("list")
@output.json_option
def show_fleet(*, as_json: bool) -> None:
    """List all agents with their state and usage.

    `—` means not known, `≥` at least: some calls could not be measured. CPU is of one core; `p` counts processes, `fd`
    open descriptors.

    \b
    Examples:
      kt agent list
      kt agent list --json
    """
    client = session.client()
    fleet = client.list()
    output.notices(fleet)
    if as_json:
        output.document(fleet)
        return
    if not fleet["instances"]:
        output.result("No agents yet.")
        output.note(output.NEXT_ABSENT)
        return
    root = str(client.files.root)
    capped = any(entry.get("budget") for entry in fleet["instances"])
    rows = [_row(entry, capped=capped) for entry in fleet["instances"]]
    titles = (*TITLES, BUDGET) if capped else TITLES
    output.result(table.render(titles, rows, width=terminal.width()))
    for line in _alarms(fleet["instances"]):
        output.result(output.wrapped(line))
    output.result("")
    output.result(output.wrapped(figures.totals(fleet["totals"])))
    if any(str(entry["agent_home"]).startswith(root + "/") for entry in fleet["instances"]):
        # The path stays whole, so that it can be copied, on a line of its own where it has to.
        where, shown = "Agent homes are below", terminal.visible(root)
        gap = " " if len(where) + 1 + terminal.columns(shown) <= terminal.width() else "\n"
        output.result(f"{where}{gap}{shown}")


def with_restart(state: str, restart: dict[str, Any] | None) -> str:
    """Return the state, and when the agent is brought back."""
    due_in_s = (restart or {}).get("due_in_s")
    if due_in_s is not None:
        return f"{state}, back in {due_in_s:.0f}\N{NO-BREAK SPACE}s"
    return f"{state}, parked" if (restart or {}).get("parked") else state


def _alarms(entries: list[dict[str, Any]]) -> list[str]:
    """Return each alarm once, with those whom it concerns."""
    concerned: dict[str, list[str]] = {}
    for entry in entries:
        for alarm in entry.get("alarms", ()):
            concerned.setdefault(str(alarm["message"]), []).append(entry["name"])
    return [
        terminal.visible(f"Alarm of {', '.join(names)}: {message}") for message, names in concerned.items()
    ]


def _row(entry: dict[str, Any], *, capped: bool) -> list[str | table.Cell]:
    state = str(entry["state"])
    row: list[str | table.Cell] = [
        entry["name"],
        entry["kind"],
        table.Cell(with_restart(state, entry.get("restart")), STATE_COLOURS.get(state, "")),
        str(entry["restart_count"]),
        figures.usage(entry["usage"], "cumulative"),
        machine_figures.brief(entry.get("resources")),
    ]
    return [*row, figures.budget(entry.get("budget"))] if capped else row
