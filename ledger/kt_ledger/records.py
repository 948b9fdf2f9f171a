"""What the store remembers about instances, their Runs and their lives: plain rows, as frozen data.

The words for states and causes are the contract's own. Knows no SQL.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kt_ledger.values import Exchange, Source, UsageEvent


class State(StrEnum):
    """The seven lifecycle states."""

    REGISTERED = "registered"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


LIVE_STATES = frozenset({State.STARTING, State.RUNNING, State.PAUSED, State.STOPPING})


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    """One registration; `adapter` is everything frozen at registration (`kt_manifest.contract.snapshot`), as JSON."""

    id: str
    name: str
    kind: str
    adapter: str
    port: int | None = None
    state: State = State.REGISTERED
    desired: str = "stopped"  # "running" | "stopped": what the operator last asked for
    run_id: str | None = None  # the current or latest Run
    cause: dict[str, Any] | None = None  # why it is in this state: {"kind": "launch-error", "detail": ...}
    created_at_ns: int
    removed_at_ns: int | None = None
    restart: dict[str, Any] | None = None  # what the restart machine remembers
    memory: str | None = None  # the kind of memory that is attached


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One life of an instance: an intent first, then what the keeper recorded."""

    id: str
    instance_id: str
    token: str = field(repr=False)  # speaks for this Run at the gateway
    state: str = "intended"  # "intended" | "live" | "ended"
    keeper_pid: int | None = None
    keeper_start_ticks: int | None = None
    agent_pid: int | None = None
    agent_start_ticks: int | None = None
    boot_id: str | None = None
    started_at_ns: int
    ended_at_ns: int | None = None
    exit_code: int | None = None
    exit_signal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRow:
    """One change of state, as the contract's transition event."""

    instance_id: str
    prior_state: State
    new_state: State
    cause: dict[str, Any]
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """Something that happened, at its place in the one order of a ledger; `instance_id` None where it is nobody's."""

    seq: int
    at_ns: int
    instance_id: str | None
    kind: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """A call with the usage that was observed of it; numbers follow the order in which calls began."""

    seq: int
    exchange: Exchange
    event: UsageEvent | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """A provider's "later": the status, when it was said, and when it says we may come back."""

    status: int
    ended_at_ns: int
    retry_at_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTotals:
    """Sums of one source over one scope (an instance, or one Run of it); sums are of what was measured.

    `events` counts usage events; `unmeasured` those whose counts are not known, by reason; a sum is None where no
    event of this scope reported that unit.
    """

    events: int = 0
    exact: int = 0
    partial: int = 0
    estimated: int = 0
    unmeasured: dict[str, int] = field(default_factory=dict)
    input_tokens: int | None = None  # input-inclusive, as the contract's JSON means it
    output_tokens: int | None = None
    cached_tokens: int | None = None  # cache reads, a subset of input_tokens
    reasoning_tokens: int | None = None

    @property
    def unmeasured_calls(self) -> int:
        """How many events have no counts."""
        return sum(self.unmeasured.values())

    @property
    def usage_known(self) -> str:
        """`all`, `partial` or `none`: how much of what happened the sums cover. Nothing happened: `all`."""
        if not self.unmeasured_calls and not self.partial:
            return "all"
        return "partial" if self.input_tokens is not None or self.output_tokens is not None else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteCounts:
    """How many findings of each kind an instance has, and the latest sentence of each."""

    counts: dict[str, int] = field(default_factory=dict)
    latest: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSummary:
    """What is known of an instance's usage at one moment.

    `uncounted`: something was said that could not be counted (a usage line that cannot be read, a number that is
    missing, output that is gone), so that sums of what it reported itself are lower bounds.
    """

    totals: dict[Source, SourceTotals] = field(default_factory=dict)
    run_totals: dict[Source, SourceTotals] = field(default_factory=dict)
    in_flight: int = 0
    uncounted: bool = False
    run_uncounted: bool = False
