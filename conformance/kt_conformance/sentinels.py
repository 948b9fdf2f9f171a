"""Reads `KTESIO_USAGE` lines from what an agent printed: a second opinion, sharing nothing with the engine's reader."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from kt_conformance.report import SectionFailed

MARK = "KTESIO_USAGE"


@dataclass(frozen=True, slots=True)
class Usage:
    """One report: its number within the Run, and the tokens."""

    sequence: int
    input_tokens: int
    output_tokens: int


def read(lines: Iterable[str]) -> list[Usage]:
    """Return the reports of one Run in the order in which they were printed, repetitions included.

    Raises:
        SectionFailed: a line that begins as one is none.
    """
    return [_one(text.strip()) for text in lines if text.strip().startswith(MARK)]


def distinct(reports: Iterable[Usage]) -> list[Usage]:
    """Return the reports of one Run, each once.

    Raises:
        SectionFailed: a number is used for two different reports, or a report says 0 and 0. Numbers may be left out (a
            shim counts messages, of which not each was a call) and come in any order (calls end in any order).
    """
    by_sequence: dict[int, Usage] = {}
    for report in reports:
        known = by_sequence.setdefault(report.sequence, report)
        if known != report:
            raise SectionFailed(
                f"got sequence {report.sequence} with {known.input_tokens} and {known.output_tokens} tokens, then with "
                f"{report.input_tokens} and {report.output_tokens}; wanted the same numbers whenever a line is repeated"
            )
        if not report.input_tokens and not report.output_tokens:
            raise SectionFailed(
                f"got a report of 0 input and 0 output tokens (sequence {report.sequence}), wanted no line where the "
                "usage is not known: a 0 asserts that the provider said 0"
            )
    return [by_sequence[number] for number in sorted(by_sequence)]


def _one(text: str) -> Usage:
    wanted = f'wanted {MARK} {{"sequence": N, "input_tokens": N, "output_tokens": N}}'
    try:
        facts = json.loads(text[len(MARK) :])
        counts = [facts.pop(name) for name in ("sequence", "input_tokens", "output_tokens")]
        cached = facts.pop("cached_tokens", 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SectionFailed(
            f"got the usage line {text[:120]!r} ({type(error).__name__}), {wanted}"
        ) from error
    whole = all(type(count) is int and count >= 0 for count in [*counts, cached])
    if facts or not whole or cached > counts[1]:
        raise SectionFailed(f"got the usage line {text[:120]!r}, {wanted}, whole numbers from 0 on")
    return Usage(*counts)
