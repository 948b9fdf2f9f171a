"""What a recipe did and what came of it: one row of the table that the suite ends with.

A row travels from the process that ran the test to the one that prints, as a property of its report.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PROPERTY = "chaos"
COLUMNS = (
    ("recipe", "recipe"),
    ("engine", "engine"),
    ("gateway", "gateway"),
    ("keeper", "keeper"),
    ("agents", "agents"),
    ("expected", "events"),
    ("lost", "lost"),
    ("doubled", "doubled"),
    ("wrong_exits", "wrong exits"),
    ("unknown_exits", "unknown exits"),
    ("survivors", "survivors"),
    ("wrong_signals", "wrong signals"),
    ("spawns", "spawns/runs"),
    ("seed", "seed"),
)
SUMMED = COLUMNS[1:-2]


@dataclass
class Tally:
    """Counts of one test; `figures` are measurements in words."""

    recipe: str
    seed: int
    engine: int = 0  # processes of this kind that were killed
    gateway: int = 0
    keeper: int = 0
    agents: int = 0
    expected: int = 0  # events that agents and provider say there were
    lost: int = 0
    doubled: int = 0
    wrong_exits: int = 0
    unknown_exits: int = 0  # allowed after the death of a keeper, where the reason is said
    survivors: int = 0
    wrong_signals: int = 0
    runs: int = 0
    spawned: int = 0
    figures: dict[str, str] = field(default_factory=dict)

    def faults(self) -> dict[str, int]:
        """Return what must be nothing and is not."""
        names = ("lost", "doubled", "wrong_exits", "survivors", "wrong_signals")
        found = {name: count for name in names if (count := getattr(self, name))}
        return found | ({} if self.spawned == self.runs else {"spawns": self.spawned, "runs": self.runs})

    def to_json(self) -> str:
        """Return it as it travels."""
        return json.dumps(asdict(self))


def rows(reports: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the rows in reports, each once."""
    found = {}
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == PROPERTY:
                found[report.nodeid] = json.loads(value)
    return list(found.values())


def table(tallies: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of the table, its sums and the figures."""
    cells = [[heading for _, heading in COLUMNS]]
    cells += [[_cell(tally, name) for name, _ in COLUMNS] for tally in tallies]
    sums = {name: sum(tally[name] for tally in tallies) for name, _ in SUMMED}
    sums |= {"runs": sum(t["runs"] for t in tallies), "spawned": sum(t["spawned"] for t in tallies)}
    cells.append([_cell({"recipe": "all", "seed": "", **sums}, name) for name, _ in COLUMNS])
    widths = [max(len(row[at]) for row in cells) for at in range(len(COLUMNS))]
    lines = ["  ".join(_aligned(cell, widths[at], at) for at, cell in enumerate(row)) for row in cells]
    figures = [
        f"{tally['recipe']}: {name}: {value}" for tally in tallies for name, value in tally["figures"].items()
    ]
    return [*lines, *([""] if figures else []), *figures]


def keep(tallies: Sequence[dict[str, Any]]) -> None:
    """Write the rows as JSON where `KT_CHAOS_JSON` says so."""
    if path := os.environ.get("KT_CHAOS_JSON"):
        Path(path).write_text(json.dumps({"schema_version": 1, "recipes": list(tallies)}, indent=1))


def _cell(tally: dict[str, Any], name: str) -> str:
    if name == "spawns":
        return f"{tally['spawned']}/{tally['runs']}"
    return str(tally[name])


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)
