"""One finding: how bad, what was found, what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"  # something holds less than it could
    BAD = "bad"  # agents, usage or secrets are in danger


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check says; `do` is empty where there is nothing to do."""

    check: str
    level: Level
    found: str
    do: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return its document."""
        return {"check": self.check, "level": str(self.level), "found": self.found, "do": self.do or None}


def ok(check: str, found: str) -> Finding:
    """Return that all is well."""
    return Finding(check, Level.OK, found)


def warn(check: str, found: str, do: str) -> Finding:
    """Return that something holds less than it could."""
    return Finding(check, Level.WARN, found, do)


def bad(check: str, found: str, do: str) -> Finding:
    """Return that something is in danger."""
    return Finding(check, Level.BAD, found, do)


def document(findings: Sequence[Finding], *, engine: bool) -> dict[str, Any]:
    """Return what `kt doctor --json` prints; `engine`: whether the engine itself looked, too."""
    levels = [finding.level for finding in findings]
    worst = next((level for level in (Level.BAD, Level.WARN) if level in levels), Level.OK)
    return {
        "schema_version": 1,
        "engine": engine,
        "worst": str(worst),
        "findings": [finding.to_json() for finding in findings],
    }
