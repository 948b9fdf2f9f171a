"""`kt agent usage`: what one agent, or the whole fleet, has used."""

from typing import Any

import click

from kt_cli import figures, output, session, table, terminal
from kt_cli.commands.show import by_source


@click.command()
@click.argument("name", required=False)
@output.json_option
def usage(name: str | None, *, as_json: bool) -> None:
    """Say what an agent has used, or, without a NAME, the whole fleet.

    The total is the declared source's; the other source is shown beside it and never added.

    \b
    Examples:
      kt agent usage bot
      kt agent usage --json
    """
    client = session.client() if name is None else session.client_for(name)
    answer = client.usage(name)
    output.notices(answer)
    if as_json:
        output.document(answer)
    elif name is None:
        output.result(output.wrapped(figures.totals(answer["totals"])))
    else:
        _tell(name, answer)


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
