"""Judges a ledger by the provider's own log: is every call in it, once, and with the figures that the provider gave?

Calls are told apart by the model that they name, which the demo's agents make different for each call; several calls
of one model are compared as a whole, so that one row too few or too many is seen all the same. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kt_cli.demo.provider_log import ProviderCall

NOT_SENT = "no"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one side says about one call; None where it does not know."""

    model: str
    path: str
    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a ledger compares; the lists are empty where all is well."""

    provider_calls: int
    ledger_rows: int
    missing: list[str] = field(default_factory=list)  # calls of the provider without a row
    doubled: list[str] = field(default_factory=list)  # rows beyond the provider's calls
    differing: list[str] = field(default_factory=list)  # calls whose figures are not the provider's

    @property
    def agrees(self) -> bool:
        """Whether every call is in the ledger, once, with the provider's figures."""
        return not (self.missing or self.doubled or self.differing)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as the demo's document shows it."""
        return {
            "agrees": self.agrees,
            "provider_calls": self.provider_calls,
            "ledger_rows": self.ledger_rows,
            "missing": self.missing,
            "doubled": self.doubled,
            "differing": self.differing,
        }


def judge(calls: Iterable[ProviderCall], rows: Iterable[Mapping[str, Any]]) -> Verdict:
    """Compare the provider's calls with the exchanges of a ledger, as the engine lists them.

    Rows of calls that never left are no calls of the provider and are left out. A call whose answer carried no usage
    must have a row without figures: an invented figure is a difference.
    """
    said = [_said(call) for call in calls]
    held = [_held(row) for row in rows if row.get("sent") != NOT_SENT]
    calls_by_name, rows_by_name = Counter(map(_name, said)), Counter(map(_name, held))
    counted_right = Counter(held)
    differing = [
        f"{_name(figures)}: the provider says {_pair(figures)}"
        for figures, count in Counter(said).items()
        if counted_right[figures] != count and rows_by_name[_name(figures)] == calls_by_name[_name(figures)]
    ]
    return Verdict(
        provider_calls=len(said),
        ledger_rows=len(held),
        missing=sorted((calls_by_name - rows_by_name).elements()),
        doubled=sorted((rows_by_name - calls_by_name).elements()),
        differing=differing,
    )


def _said(call: ProviderCall) -> Figures:
    return Figures(call.model, call.path, call.input_tokens, call.output_tokens)


def _held(row: Mapping[str, Any]) -> Figures:
    return Figures(
        str(row.get("model_asked")), str(row["path"]), row.get("input_tokens"), row.get("output_tokens")
    )


def _name(figures: Figures) -> str:
    return f"{figures.model} {figures.path}"


def _pair(figures: Figures) -> str:
    if figures.input_tokens is None:
        return "nothing"
    return f"in {figures.input_tokens} / out {figures.output_tokens}"
