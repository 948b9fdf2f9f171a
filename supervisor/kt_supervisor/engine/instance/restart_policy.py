"""Whether and when an agent that ended by itself is brought back. Pure: end, history and moment in, decision out.

Failures count in a sliding window that is kept in the ledger, so neither a restart of the engine nor one of the machine
gives an agent new credit. Times are kept as boot, monotonic and wall clock together: within one boot a wall clock that
somebody sets back or forth changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

NEVER, ON_FAILURE, ALWAYS = "never", "on-failure", "always"
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
JITTER = 0.2
"""How much of a wait is left to chance, to either side, so that agents that failed together do not return together."""
LIMITED_WAIT_S = 60.0
"""How long a provider that refused for its rate, and did not say until when, is left alone."""
LONGEST_LIMIT_S = 24 * 3600.0
LIMITED_SPREAD_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A moment that can be compared with others, also across a restart of the machine."""

    boot_id: str
    monotonic_ns: int
    wall_ns: int

    def since(self, earlier: "Instant") -> float:
        """Return the seconds from `earlier` to this; never negative."""
        if self.boot_id == earlier.boot_id:
            return max(0, self.monotonic_ns - earlier.monotonic_ns) / 1e9
        return max(0, self.wall_ns - earlier.wall_ns) / 1e9

    def later(self, seconds: float) -> "Instant":
        """Return the moment `seconds` after this."""
        more_ns = int(seconds * 1e9)
        return replace(self, monotonic_ns=self.monotonic_ns + more_ns, wall_ns=self.wall_ns + more_ns)

    def to_json(self) -> list[Any]:
        """Return it as it is kept."""
        return [self.boot_id, self.monotonic_ns, self.wall_ns]

    @classmethod
    def from_json(cls, facts: list[Any]) -> Self:
        """Read it; raises ValueError, TypeError."""
        boot_id, monotonic_ns, wall_ns = facts
        return cls(boot_id=str(boot_id), monotonic_ns=int(monotonic_ns), wall_ns=int(wall_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A restart that was decided: when, how long that was to wait from the decision on, and why so long."""

    at: Instant
    wait_s: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is kept of an agent's restarts since an operator last started it."""

    count: int = 0  # how often it was brought back
    attempt: int = 0  # failures in a row, for the back-off
    failures: tuple[Instant, ...] = ()  # those that may still lie in the window
    due: Due | None = None
    parked: str | None = None  # why it is not brought back, where the policy alone would

    def to_json(self) -> dict[str, Any]:
        """Return it as the ledger keeps it."""
        document: dict[str, Any] = {
            "count": self.count,
            "attempt": self.attempt,
            "failures": [failure.to_json() for failure in self.failures],
        }
        if self.due is not None:
            document["due"] = {"at": self.due.at.to_json(), "wait_s": self.due.wait_s, "why": self.due.why}
        if self.parked is not None:
            document["parked"] = self.parked
        return document

    @classmethod
    def from_json(cls, facts: Mapping[str, Any] | None) -> Self:
        """Read it; what makes no sense is an empty history."""
        if not facts:
            return cls()
        try:
            due = facts.get("due")
            return cls(
                count=int(facts["count"]),
                attempt=int(facts["attempt"]),
                failures=tuple(Instant.from_json(failure) for failure in facts["failures"]),
                due=None
                if due is None
                else Due(at=Instant.from_json(due["at"]), wait_s=float(due["wait_s"]), why=str(due["why"])),
                parked=None if facts.get("parked") is None else str(facts["parked"]),
            )
        except (KeyError, ValueError, TypeError, AttributeError):
            return cls()

    def remaining_s(self, now: Instant) -> float:
        """Return how long the restart that is due has to wait yet; never longer than it was to wait at all."""
        if self.due is None:
            return 0.0
        return min(self.due.at.since(now), self.due.wait_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the operator set."""

    word: str = ON_FAILURE
    limit: int = 5
    window_s: float = 600.0
    reset_after_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a Run ended that nobody asked to end.

    `uptime_s` is None where that is not known. `permanent`: why starting it again would come to the same. `limited`:
    the provider refused its last call for its rate, until `limited_until_ns` (wall clock) where it said so.
    """

    success: bool = False
    uptime_s: float | None = None
    permanent: str | None = None
    limited: bool = False
    limited_until_ns: int | None = None


def decide(policy: Policy, history: History, end: End, *, now: Instant, chance: float) -> History:
    """Return the history with the restart that follows as its `due`, or without one.

    Args:
        policy: what the operator set.
        history: what was kept until now.
        end: how the Run ended.
        now: when.
        chance: a number from -1 to 1, for the jitter.
    """
    past = replace(history, due=None, parked=None)
    if policy.word == NEVER or (end.success and policy.word == ON_FAILURE):
        return past
    if end.permanent is not None:
        return replace(past, parked=end.permanent)
    if end.limited:
        return _after_limit(past, end, now=now, chance=chance)
    if end.uptime_s is not None and end.uptime_s >= policy.reset_after_s:
        past = replace(past, attempt=0, failures=())
    recent = tuple(failure for failure in past.failures if now.since(failure) < policy.window_s)
    past = replace(past, failures=(*recent, now))
    if len(past.failures) >= policy.limit:
        why = f"crash loop: {len(past.failures)} failures within {policy.window_s:g} s"
        return replace(past, parked=why)
    wait_s = min(FIRST_WAIT_S * 2 ** min(past.attempt, 10), LONGEST_WAIT_S) * (1 + JITTER * chance)
    due = Due(at=now.later(wait_s), wait_s=wait_s, why="back-off")
    return replace(past, attempt=past.attempt + 1, due=due)


def _after_limit(past: History, end: End, *, now: Instant, chance: float) -> History:
    """Wait until the provider takes calls again; that is no failure of the agent's."""
    until_ns = end.limited_until_ns
    stated_s = LIMITED_WAIT_S if until_ns is None else max(0.0, (until_ns - now.wall_ns) / 1e9)
    # Only ever later than stated: a call before the reset would be refused again.
    wait_s = min(stated_s, LONGEST_LIMIT_S) + LIMITED_SPREAD_S * (1 + chance) / 2
    why = "the provider's rate limit" + ("" if until_ns is not None else ", reset time not stated")
    return replace(past, due=Due(at=now.later(wait_s), wait_s=wait_s, why=why))


def made_up_for(history: History, *, now: Instant) -> History:
    """Return the history of an agent whose start nobody finished: it is begun again at once."""
    return replace(history, due=Due(at=now, wait_s=0.0, why="its start was cut short"), parked=None)


def after_boot(history: History, *, now: Instant, chance: float) -> History:
    """Return the history of an agent that a restart of the machine ended, and that shall come back."""
    wait_s = LIMITED_SPREAD_S * (1 + chance) / 2
    due = Due(at=now.later(wait_s), wait_s=wait_s, why="the machine was restarted")
    return replace(history, due=due, parked=None)
