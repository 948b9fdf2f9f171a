"""Tells what the demo found: the ledger by agent and source, the judgement, where the state is, what to type next."""

from typing import Any

from kt_cli import figures, output, table, terminal
from kt_cli.commands.show import SOURCE_TITLES, source_row, sources
from kt_cli.demo.judge import Verdict
from kt_cli.demo.story import Outcome

DECLARED = "✓"


def ledger(outcome: Outcome) -> str:
    """Return the table of the ledger, a row for each agent and source, and the fleet's total."""
    rows = [row for entry in outcome.fleet["instances"] for row in _rows(entry)]
    lines = [
        "The ledger, by who counted:",
        table.render(("Agent", "Counts", *SOURCE_TITLES), rows, width=terminal.width()),
        "",
        output.wrapped(figures.totals(outcome.fleet["totals"])),
        f"{DECLARED} is the agent's declared source: only that one is in the total.",
        *_findings(outcome),
    ]
    return "\n".join(lines)


def _rows(entry: dict[str, Any]) -> list[list[str | table.Cell]]:
    declared = entry["metering_source"]
    return [
        [entry["name"], DECLARED if source == declared else "", *source_row(source, facts)]
        for source, facts in sources(entry)
    ]


def _findings(outcome: Outcome) -> list[str]:
    """Return a line an agent about what was seen and not counted."""
    lines = []
    for name, counts in outcome.findings.items():
        seen = ", ".join(f"{figures.grouped(count)} {kind}" for kind, count in counts.items() if count)
        lines += [f"Usage lines of {name} that were seen and not counted: {seen}."] if seen else []
    return lines


def judgement(verdict: Verdict) -> str:
    """Return what the comparison with the provider's own log says."""
    calls = figures.plural(verdict.provider_calls, "call")
    if verdict.agrees:
        text = (
            f"✓ The provider's own log has {calls}: each is in the ledger, once, with the provider's figures."
        )
        return terminal.coloured(output.wrapped(text), "green")
    lines = [
        f"✗ The provider's own log has {calls}, the ledger {figures.plural(verdict.ledger_rows, 'row')}:"
    ]
    lines += [f"  not in the ledger: {name}" for name in verdict.missing]
    lines += [f"  in the ledger without a call: {name}" for name in verdict.doubled]
    lines += [f"  with other figures: {text}" for text in verdict.differing]
    return "\n".join(terminal.coloured(terminal.visible(line), "red") for line in lines)


def next_steps(outcome: Outcome) -> str:
    """Return where the state is, and what to type next."""
    if outcome.kept:
        where = f"The state is in {terminal.visible(str(outcome.state_dir))}. Look at it:"
        look = f"  export KTESIO_STATE_DIR={terminal.visible(str(outcome.state_dir))}\n  kt agent list"
        return f"{where}\n{look}\n  kt agent show both\n  kt agent logs opaque"
    return (
        "The demo's state was temporary and is gone (kt demo --state-dir DIR keeps it).\n"
        "Next, with an agent of your own:\n"
        '  kt agent register bot --kind command --observe -- python "$PWD/bot.py"\n'
        "  kt agent config set bot metering.upstream_base_url https://api.openai.com/v1\n"
        "  kt agent start bot\n"
        "  kt agent list"
    )
