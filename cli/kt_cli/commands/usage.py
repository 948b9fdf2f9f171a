"""`kt agent usage`: what one agent, or the whole fleet, has used."""

from typing import Any

import click

from kt_cli import figures, output, session, table, terminal
from kt_cli.commands.show import by_source
from kt_client.errors import KtError
from kt_ledger import exit_codes


@click.command()
@click.argument("name", required=False)
@click.option(
    "--removed", is_flag=True, help="Of agents that were removed, latest first; NAME may be an id as well."
)
@output.json_option
def usage(name: str | None, *, removed: bool, as_json: bool) -> None:
    """Say what an agent has used, or, without a NAME, the whole fleet.

    The total is the declared source's; the other source is shown beside it and never added.

    \b
    Examples:
      kt agent usage bot
      kt agent usage --json
      kt agent usage --removed
    """
    if removed:
        _tell_removed(name, as_json=as_json)
        return
    client = session.client() if name is None else session.client_for(name)
    answer = client.usage(name)
    output.notices(answer)
    if as_json:
        output.document(answer)
    elif name is None:
        output.result(output.wrapped(figures.totals(answer["totals"])))
    else:
        _tell(name, answer)


def _tell_removed(name: str | None, *, as_json: bool) -> None:
    answer = session.client().usage_of_removed()
    found = [one for one in answer["removed"] if name in (None, one["name"], one["id"])]
    if name is not None and not found:
        raise KtError(
            f"no removed agent {name!r}: wanted the name or the id of one; `kt agent usage --removed` names them",
            exit_code=exit_codes.NOT_FOUND,
            code="not_found",
        )
    if as_json:
        output.document({**answer, "removed": found} if name is None else _without_totals(answer, found))
        return
    if not found:
        output.result("No agent was removed.")
        return
    rows = [
        [one["name"], one["id"], str(one["removed_at"]), figures.usage(one["usage"], "cumulative")]
        for one in found
    ]
    output.result(table.render(("Name", "Id", "Removed", "Usage (tok)"), rows, width=terminal.width()))


def _without_totals(answer: dict[str, Any], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the answer about some of them: totals would be about all."""
    return {"schema_version": answer["schema_version"], "removed": found}


def _tell(name: str, answer: dict[str, Any]) -> None:
    view = answer["usage"]
    source = answer.get("metering_source") or view.get("metering_source") or figures.ABSENT
    rows = [
        ("Cumulative tokens", figures.usage(view, "cumulative")),
        ("Cumulative cost", figures.cost(view, "cumulative")),
        ("Current-run tokens", figures.usage(view, "current_run")),
        ("Current-run cost", figures.cost(view, "current_run")),
        ("Metering source", str(source)),
    ]
    output.result(f"Usage of {name}")
    output.result(table.render(("Field", "Value"), rows, width=terminal.width()))
    if sources := by_source(answer):
        output.result("\n" + sources)
    if view.get("usage_known") == "partial" and not view.get("unmeasured_calls"):
        output.result("\n" + output.wrapped(_LOWER_BOUND))


_LOWER_BOUND = (
    f"{figures.AT_LEAST.strip()} although no call is unknown: only what was told or seen is counted; the agent may "
    "make calls that no listener sees, or its report has gaps (`kt agent show` names those)."
)
"""Why a sum may be a lower bound without a call that is known to be missing from it."""
