"""Settings as `config` shows them: a table, one value, or where each value comes from."""

import json
from collections.abc import Iterator
from typing import Any

from kt_cli import figures, output, table, terminal

TITLES = ("Key", "Value", "Validated", "Source")


def as_table(entries: list[dict[str, Any]]) -> str:
    """Return the table of all settings."""
    rows = [
        (entry["key"], shown(entry["value"]), _validated(entry), str(entry.get("source", figures.ABSENT)))
        for entry in entries
    ]
    return table.render(TITLES, rows, width=terminal.width())


def with_sources(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield, for each setting, its layer, its file, and the weaker values that it hides."""
    for entry in entries:
        yield f"{terminal.visible(entry['key'])} = {shown(entry['value'])}"
        where = terminal.visible(str(entry["file"])) if entry.get("file") else _nowhere(entry)
        yield f"    {entry.get('source', figures.ABSENT)}{': ' + where if where else ''}"
        for weaker in entry.get("hides", ()):
            key = "" if weaker["key"] == entry["key"] else f"{terminal.visible(weaker['key'])} = "
            yield f"    hides {key}{shown(weaker['value'])} ({weaker['source']})"
        if entry.get("unvalidated"):
            yield "    not validated: a variable of the agent"
        if entry.get("fault"):
            yield f"    fault: {terminal.visible(str(entry['fault']))}"


def bare(value: Any) -> str:
    """Return one value for a script: as it is, a list as `config set` takes it."""
    from kt_manifest.configuration import value_types

    return value_types.as_typed(value) if isinstance(value, list) else str(value)


def shown(value: Any) -> str:
    """Return a value that may stand on a screen."""
    return terminal.visible(value if isinstance(value, str) else json.dumps(value))


def change(entry: dict[str, Any]) -> str:
    """Return one line of `config diff`."""
    before, after = ("unset" if entry[field] is None else shown(entry[field]) for field in ("from", "to"))
    source = f" ({entry['source']})" if entry.get("source") else ""
    if before == after:
        after = "another value"
    return f"{terminal.visible(entry['key'])}: {before} -> {after}{source}, {entry['effect']}"


def alarms(answer: dict[str, Any]) -> None:
    """Write what cannot be used to standard error."""
    for alarm in answer.get("alarms", ()):
        output.note(f"kt: alarm: {terminal.visible(str(alarm['message']))}")


def _validated(entry: dict[str, Any]) -> str:
    if entry.get("fault"):
        return "refused"
    return "no" if entry.get("unvalidated") else "yes"


def _nowhere(entry: dict[str, Any]) -> str:
    return "what the engine delivers to the Run under way" if entry.get("injected") else ""
