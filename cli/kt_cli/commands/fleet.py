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
    "Budget (tok, est.\N{NO-BREAK SPACE}$)",
    "Usage (tok, est.\N{NO-BREAK SPACE}$)",
    "CPU, memory",
    "Agent Home",
)
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
    rows = [_row(entry, root) for entry in fleet["instances"]]
    output.result(table.render(TITLES, rows, width=terminal.width()))
    output.result("")
    output.result(output.wrapped(figures.totals(fleet["totals"])))
    if any(str(entry["agent_home"]).startswith(root + "/") for entry in fleet["instances"]):
        # The path stays whole, so that it can be copied, on a line of its own where it has to.
        where, shown = "Agent homes are below", terminal.visible(root)
        gap = " " if len(where) + 1 + terminal.columns(shown) <= terminal.width() else "\n"
        output.result(f"{where}{gap}{shown}")


def _with_restart(state: str, restart: dict[str, Any] | None) -> str:
    """Return the state, and when the agent is brought back."""
    due_in_s = (restart or {}).get("due_in_s")
    return state if due_in_s is None else f"{state}, back in {due_in_s:.0f} s"


def _row(entry: dict[str, Any], root: str) -> list[str | table.Cell]:
    state = str(entry["state"])
    return [
        entry["name"],
        entry["kind"],
        table.Cell(_with_restart(state, entry.get("restart")), STATE_COLOURS.get(state, "")),
        str(entry["restart_count"]),
        figures.budget(entry.get("budget")),
        figures.usage(entry["usage"], "cumulative"),
        machine_figures.brief(entry.get("resources")),
        str(entry["agent_home"]).removeprefix(root + "/"),
    ]
