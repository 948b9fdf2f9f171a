"""The variables of one launch: each with where it comes from, the strongest wins, and what loses is told. Pure.

From weak to strong, as `STRENGTH` has it. A value that is replaced by a different one is told once for each place that
it came from, unless the pair is in `SILENT`: there, whoever set the stronger one named the variable itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kt_manifest.configuration import options


class Source(StrEnum):
    """Where a variable, an argument or a file comes from."""

    INHERITED = "inherited"
    ADAPTER = "adapter"
    ISOLATION = "isolation"
    SETTING = "setting"
    ENGINE = "engine"
    UPDATES = "updates"


@dataclass(frozen=True, slots=True)
class EnvEntry:
    """One variable; `key` is the setting that it delivers, empty where it delivers none. The value shows in no repr."""

    name: str
    value: str = field(repr=False)
    source: Source
    key: str = ""

    @property
    def passes_through(self) -> bool:
        """Whether it is an `agent.NAME` setting."""
        return self.source is Source.SETTING and self.key == options.PASS_THROUGH + self.name

    @property
    def setter(self) -> str:
        """Who sets it, in a word for a sentence."""
        if self.key:
            return self.key
        return {
            Source.INHERITED: "the caller",
            Source.ADAPTER: "[lifecycle.start] env",
            Source.ISOLATION: "[kt.isolation]",
            Source.UPDATES: "[kt.updates]",
        }.get(self.source, "the engine")


STRENGTH: dict[str, int] = {
    "inherited": 0,
    "adapter": 1,
    "isolation": 2,
    "pass-through": 3,
    "mapped": 4,
    "delivered": 5,
    "updates": 6,
    "engine": 7,
}
"""Pass-through is `agent.NAME`, mapped a setting by a rule, delivered what the engine has for a rule."""

SILENT: frozenset[tuple[str, str]] = frozenset(
    {
        ("adapter", "inherited"),
        ("pass-through", "inherited"),
        ("pass-through", "adapter"),
    }
)
"""(stronger, weaker): not told."""


def sort(entry: EnvEntry) -> str:
    """Return which of `STRENGTH` an entry is."""
    match entry.source:
        case Source.SETTING:
            return "pass-through" if entry.passes_through else "mapped"
        case Source.ENGINE:
            return "delivered" if entry.key else "engine"
        case _:
            return str(entry.source)


def compose(entries: Iterable[EnvEntry]) -> tuple[tuple[EnvEntry, ...], list[str]]:
    """Return the winning entry of each variable, and what is told of those that lost."""
    rivals: dict[str, list[EnvEntry]] = {}
    for entry in sorted(entries, key=lambda entry: STRENGTH[sort(entry)]):
        rivals.setdefault(entry.name, []).append(entry)
    winners = tuple(found[-1] for found in rivals.values())
    return winners, [told for found in rivals.values() for told in _losses(found) if told]


def _losses(rivals: Sequence[EnvEntry]) -> Iterable[str]:
    *losers, winner = rivals
    return [
        _told(loser, winner)
        for loser in reversed(losers)
        if loser.value != winner.value and (sort(winner), sort(loser)) not in SILENT
    ]


def _told(loser: EnvEntry, winner: EnvEntry) -> str:
    name, by = loser.name, winner.setter
    if loser.key:
        return f"{loser.key} is not delivered: {by} sets {name}"
    if loser.source is Source.ISOLATION:
        return f"{name} does not lead to its folder in the Agent Home: {by} sets it"
    if loser.source is Source.UPDATES:
        return f"{name}, which switches self-update off, is replaced: {by} sets it"
    whose = "caller" if loser.source is Source.INHERITED else "adapter"
    return f"{name} of the {whose}'s environment is replaced: {by} sets it"
