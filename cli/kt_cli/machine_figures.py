"""How an agent's use of the machine is written; a dash where nothing is known, and then why."""

from collections.abc import Mapping
from typing import Any

from kt_cli import figures

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def brief(used: Mapping[str, Any] | None) -> str:
    """Return processor, memory, processes and descriptors in one short text, for `list`."""
    if not used or used.get("processes") is None:
        return figures.ABSENT
    processes, descriptors = figures.grouped(used["processes"]), figures.grouped(used.get("descriptors"))
    return f"{percent(used)} {size(used.get('memory_bytes'))} {processes}p {descriptors}fd"


def rows(used: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the rows of `show`."""
    if not used:
        return []
    why = used.get("unknown") or {}
    window_s = used.get("cpu_window_s")
    over = f" of one core, over {window_s:g} s" if window_s is not None else ""
    memory = f"{size(used.get('memory_bytes'))} resident"
    if used.get("pss_bytes") is not None:
        memory += f", {size(used['pss_bytes'])} proportional"
    return [
        ("CPU", percent(used) + over if used.get("cpu_percent") is not None else _absent(why, "cpu")),
        ("Memory", memory if used.get("memory_bytes") is not None else _absent(why, "memory")),
        ("Processes", _count(used, why, "processes")),
        ("Open descriptors", _count(used, why, "descriptors")),
    ]


def limits(shown: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return a row for each limit: its value in the settings, and what holds it."""
    found = []
    for name, facts in (shown or {}).items():
        value = facts.get("value") or "no longer set"
        enforced = facts.get("enforced")
        found.append(
            (f"Limit: {name}", f"{value} ({enforced})" if enforced else f"{value} (at the next start)")
        )
    return found


def percent(used: Mapping[str, Any]) -> str:
    """Return processor use in percent of one core."""
    value = used.get("cpu_percent")
    return figures.ABSENT if value is None else f"{value:.1f}%"


def size(count: int | None) -> str:
    """Return bytes in the unit that leaves two to four digits."""
    if count is None:
        return figures.ABSENT
    value, unit = float(count), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f}{UNITS[unit]}" if value >= 10 or not unit else f"{value:.1f}{UNITS[unit]}"


def _count(used: Mapping[str, Any], why: Mapping[str, str], name: str) -> str:
    return figures.grouped(used[name]) if used.get(name) is not None else _absent(why, name)


def _absent(why: Mapping[str, str], name: str) -> str:
    return f"{figures.ABSENT} ({why[name]})" if why.get(name) else figures.ABSENT
