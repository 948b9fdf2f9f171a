"""How much of the truth an exchange's record holds: one table, first line that applies."""

from dataclasses import dataclass

from kt_ledger.values import Completeness, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known once nothing more will come."""

    metered: bool
    status: int | None
    measured: bool  # a usage object with something in it was seen
    whole: bool  # ... with both sums valid
    adds_up: bool  # ... and nothing in it that contradicts itself
    stream: bool
    done: bool  # the dialect's terminal event was seen
    finished: bool  # a finish reason was seen
    error: bool  # an error object was seen
    deferred: bool  # the answer says that the work is not done yet
    unbilled: bool  # a dialect whose answers cost nothing where they report nothing
    undecodable: bool
    too_large: bool
    faulty: bool  # our own code failed
    failure: Reason | None  # what ended the exchange before its message did


@dataclass(frozen=True, slots=True)
class Verdict:
    """Completeness and, unless exact, why."""

    completeness: Completeness
    reason: Reason | None


FAULTY = Verdict(Completeness.UNKNOWN, Reason.METER_FAULT)
"""The verdict where our own code cannot even say what it saw."""


def judge(facts: Facts) -> Verdict:
    """Return the verdict: exact only for a measured answer that nothing speaks against."""
    reason = _against(facts)
    if reason is None:
        return Verdict(Completeness.EXACT, None)
    return Verdict(Completeness.PARTIAL if facts.measured else Completeness.UNKNOWN, reason)


def _against(facts: Facts) -> Reason | None:
    failed = facts.status is not None and facts.status >= 400
    lines: tuple[tuple[bool, Reason | None], ...] = (
        (facts.failure is not None and not facts.done, facts.failure),
        (not facts.metered, Reason.UNMETERED_PATH),
        (facts.faulty, Reason.METER_FAULT),
        (failed and not facts.measured, Reason.PROVIDER_ERROR),
        (facts.error and not failed, Reason.ERROR_IN_BODY),
        (facts.undecodable, Reason.UNDECODABLE),
        (facts.too_large and not facts.measured, Reason.TOO_LARGE),
        (facts.stream and not (facts.done or facts.finished or failed), Reason.NO_TERMINAL_EVENT),
        (facts.deferred and not facts.measured, Reason.DEFERRED),
        (facts.unbilled and not facts.measured, Reason.UNBILLED),
        (not facts.measured, Reason.NO_USAGE),
        (not facts.whole, Reason.USAGE_INCOMPLETE),
        (not facts.adds_up, Reason.USAGE_INCONSISTENT),
    )
    return next((reason for applies, reason in lines if applies), None)


def ends_cleanly(facts: Facts) -> bool:
    """Return whether the agent may see a proper end: not a cut answer, not a stream that stops in mid-sentence.

    An error object ends a stream in the dialect's own words, and an error status is never taken for success.
    """
    if facts.failure is not None:
        return False
    failed = facts.status is not None and facts.status >= 400
    unread = facts.undecodable or facts.too_large or facts.faulty
    return facts.done or facts.finished or facts.error or failed or unread or not facts.stream
