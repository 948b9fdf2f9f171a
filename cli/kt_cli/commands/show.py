"""`kt agent show`: all that is known of one agent."""

from typing import Any

import click

from kt_cli import completing, figures, machine_figures, output, posture_figures, session, table, terminal
from kt_cli.commands.fleet import STATE_COLOURS, with_restart


@click.command()
@completing.name_argument
@output.json_option
def show(name: str, *, as_json: bool) -> None:
    """Show all that is known of one agent.

    What it can do, its state, its usage by source, and why it failed.

    \b
    Examples:
      kt agent show bot
      kt agent show bot --json
    """
    answer = session.client_for(name).show(name)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    instance = answer["instance"]
    if capabilities := _capabilities(name, instance):
        output.result(capabilities + "\n")
    output.result(f"Runtime status for {name}")
    output.result(table.render(("Field", "Value"), _rows(instance), width=terminal.width()))
    if sources := by_source(instance):
        output.result("\n" + sources)
    for line in _remarks(instance):
        output.result("\n" + terminal.visible(line))


def _capabilities(name: str, instance: dict[str, Any]) -> str:
    levels = instance.get("capabilities")
    if not isinstance(levels, dict) or not levels:
        return ""
    system = instance.get("os", "this one")
    rows = [(word, str(level)) for word, level in levels.items()]
    body = table.render(("Capability", "Support (current OS)"), rows, width=terminal.width())
    return f"Capabilities for {name} (OS: {system})\n{body}"


def _rows(instance: dict[str, Any]) -> list[tuple[str, str | table.Cell]]:
    usage, state = instance["usage"], str(instance["state"])
    rows: list[tuple[str, str | table.Cell]] = [
        ("Kind", str(instance["kind"])),
        ("State", table.Cell(with_restart(state, instance.get("restart")), STATE_COLOURS.get(state, ""))),
        ("Restart policy", str(instance.get("restart_policy", figures.ABSENT))),
        ("Restart count", str(instance["restart_count"])),
        *_restart(instance.get("restart")),
        ("Budget", figures.budget(instance.get("budget"))),
        (
            "Usage (tokens)",
            f"cumulative {figures.usage(usage, 'cumulative')}; this run: {figures.usage(usage, 'current_run')}",
        ),
        ("Cost (estimated)", figures.cost(usage, "cumulative")),
        ("Metering source", str(instance["metering_source"])),
    ]
    rows += _when(instance)
    known = (
        ("Run", "run_id"),
        ("Process", "pid"),
        ("Port", "port"),
        ("Agent Home", "agent_home"),
        ("Memory backing", "memory_backing"),
    )
    rows += [(title, str(instance[key])) for title, key in known if instance.get(key) is not None]
    rows += machine_figures.rows(instance.get("resources"))
    return [
        *rows,
        *machine_figures.limits(instance.get("limits")),
        *posture_figures.rows(instance.get("posture")),
    ]


def _when(instance: dict[str, Any]) -> list[tuple[str, str]]:
    """Return when the latest Run began, and how long it has lived or how it ended."""
    if not instance.get("started_at"):
        return []
    rows = [("Started", str(instance["started_at"]))]
    if instance.get("uptime_s") is not None:
        rows.append(("Uptime", figures.duration(float(instance["uptime_s"]))))
    ended = instance.get("exit")
    if ended is not None:
        how = f"code {ended['code']}" if ended.get("code") is not None else figures.ABSENT
        how = f"signal {ended['signal']}" if ended.get("signal") is not None else how
        rows.append(("Ended", f"{instance.get('ended_at') or figures.ABSENT} with {how}"))
    return rows


def _restart(facts: dict[str, Any] | None) -> list[tuple[str, str]]:
    if not facts:
        return []
    if facts.get("parked"):
        return [("Restart", f"none: {facts['parked']}")]
    return [("Restart", f"in {float(facts['due_in_s']):.1f} s ({facts['waits_for']})")]


def by_source(entry: dict[str, Any]) -> str:
    """Return the table of usage by who counted; empty where the engine gave none."""
    rows = [source_row(name, facts) for name, facts in sources(entry)]
    return table.render(SOURCE_TITLES, rows, width=terminal.width()) if rows else ""


def sources(entry: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the sums by source of an instance (or of the answer about its usage), as the engine gave them."""
    found = entry["usage"].get("sources") or entry.get("sources") or {}
    return list(found.items())


SOURCE_TITLES = ("Source", "Calls", "Exact", "Partial", "Unknown", "Input", "Output")
"""The columns of usage by source: exact, partial and unknown apart."""


def source_row(name: str, facts: dict[str, Any]) -> list[str]:
    """Return one row under `SOURCE_TITLES` from one source's sums."""
    return [
        name,
        figures.grouped(facts.get("events", 0)),
        figures.grouped(facts.get("exact", 0)),
        figures.grouped(facts.get("partial", 0)),
        figures.grouped(unmeasured_calls(facts)),
        figures.grouped(facts.get("input_tokens")),
        figures.grouped(facts.get("output_tokens")),
    ]


def unmeasured_calls(facts: dict[str, Any]) -> int:
    """Return how many calls of one source have no counts; the engine says it by reason or as one number."""
    found = facts.get("unmeasured_calls", facts.get("unmeasured", 0))
    return sum(found.values()) if isinstance(found, dict) else int(found)


def _remarks(instance: dict[str, Any]) -> list[str]:
    remarks = []
    if cause := instance.get("failed_cause"):
        remarks.append(f"Failed: {_sentence(cause)}")
    if isinstance(gap := instance.get("usage_gap"), dict) and gap.get("notice"):
        remarks.append(f"Note: {gap['notice']}")
    remarks += [f"Alarm: {alarm['message']}" for alarm in instance.get("alarms", ())]
    remarks += [f"Note: {text}" for text in instance.get("remarks", ())]
    notes = instance.get("notes")
    if isinstance(notes, dict):
        counts, latest = notes.get("counts", notes), notes.get("latest", {})
        for kind, count in counts.items():
            if isinstance(count, int) and count:
                last = f" (last: {latest[kind]})" if latest.get(kind) else ""
                remarks.append(f"{figures.grouped(count)} x {kind}{last}")
    return remarks


def _sentence(cause: Any) -> str:
    if not isinstance(cause, dict):
        return str(cause)
    kind, detail = str(cause.get("kind", "unknown")), cause.get("detail")
    rest = {key: value for key, value in cause.items() if key not in ("kind", "detail")}
    more = f": {detail}" if detail else "".join(f", {key} {value}" for key, value in rest.items())
    return f"{kind}{more}"
