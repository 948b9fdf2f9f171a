"""The values of the ledger: counts, usage events and exchanges, as plain frozen data.

Laws: a count that nobody reported is None, never 0; units are disjoint (a cached token is not also an input token);
totals that include another unit are derived here and stored nowhere. Knows no file, no clock and no provider.
"""

from dataclasses import dataclass, field, fields
from enum import StrEnum

U64_MAX = 2**64 - 1
"""The largest count that the contract lets anybody report."""


class Source(StrEnum):
    """Who counted: the contract's own two words."""

    SELF_REPORTED = "self-reported"
    ENGINE_OBSERVED = "engine-observed"


class Completeness(StrEnum):
    """How much of the truth an event holds; everything but `exact` comes with a reason."""

    EXACT = "exact"
    PARTIAL = "partial"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


class Sent(StrEnum):
    """Whether a request left for the provider. `maybe`: our process died between deciding and noting it."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


class Reason(StrEnum):
    """Why an exchange is not exact, or never left. One word each, shown to people and kept in the ledger."""

    NO_USAGE = "no_usage"  # a complete 2xx answer that carries no usage object
    NO_TERMINAL_EVENT = "no_terminal_event"  # a stream that ended without the event that ends its dialect
    PROVIDER_ERROR = "provider_error"  # status >= 400 and no usage object
    ERROR_IN_BODY = "error_in_body"  # an error object inside a 200
    CLIENT_GONE = "client_gone"  # the agent left while the answer was under way
    UPSTREAM_CUT = "upstream_cut"  # the provider's connection ended before its message did
    UNDECODABLE = "undecodable"  # the answer's encoding or JSON could not be read
    TOO_LARGE = "too_large"  # the answer did not fit the bounded buffer that looks for usage
    USAGE_INCOMPLETE = "usage_incomplete"  # a usage object in which a sum is missing or no valid count
    USAGE_INCONSISTENT = (
        "usage_inconsistent"  # sums and parts contradict each other, or a member is named twice
    )
    DEFERRED = (
        "deferred"  # answered before the work was done (background, batch): its usage comes elsewhere, later
    )
    UNBILLED = "unbilled"  # a call that reports no tokens and costs nothing (moderation)
    UNMETERED_PATH = "unmetered_path"  # a path inside the upstream whose usage we cannot read
    METER_FAULT = "meter_fault"  # our own decoder failed; the bytes went through
    GATEWAY_DIED = "gateway_died"  # an open record that no close record follows, bytes had left
    MAY_NOT_HAVE_BEEN_SENT = "may_not_have_been_sent"  # the same, and nothing says that bytes had left
    # Never left (sent = no): rows without a usage event.
    CLIENT_GONE_BEFORE_SEND = "client_gone_before_send"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    REFUSED_TOKEN = "refused_token"
    REFUSED_HOST = "refused_host"
    INSTANCE_STOPPED = "instance_stopped"
    INSTANCE_PAUSED = "instance_paused"  # held while its agent was paused, and not released in time
    GATEWAY_HANDED_OVER = "gateway_handed_over"  # held, and reset when its gateway made way for the next
    BAD_REQUEST = "bad_request"  # not HTTP that we forward (smuggling, oversized head)
    JOURNAL_UNAVAILABLE = "journal_unavailable"


@dataclass(frozen=True, slots=True)
class Counts:
    """Disjoint token units of one event (and a few that are not tokens); None where nobody reported one."""

    input: int | None = None  # uncached input
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None  # visible output, reasoning excluded
    reasoning: int | None = None
    audio_input: int | None = None
    audio_output: int | None = None
    image_input: int | None = None
    image_output: int | None = None
    seconds: int | None = None
    characters: int | None = None
    tool_calls: int | None = None

    @property
    def input_total(self) -> int | None:
        """Input as OpenAI and the sentinel mean it: cached tokens included. None where no part is known."""
        return _sum(
            self.input,
            self.cache_read,
            self.cache_write_5m,
            self.cache_write_1h,
            self.audio_input,
            self.image_input,
        )

    @property
    def output_total(self) -> int | None:
        """Output as OpenAI and the sentinel mean it: reasoning included. None where no part is known."""
        return _sum(self.output, self.reasoning, self.audio_output, self.image_output)

    @property
    def known(self) -> bool:
        """Whether anything was reported at all."""
        return any(getattr(self, unit) is not None for unit in UNITS)

    def to_json(self) -> dict[str, int]:
        """Return the known units by name; an absent name is an unknown unit."""
        return {unit: value for unit in UNITS if (value := getattr(self, unit)) is not None}


UNITS: tuple[str, ...] = tuple(f.name for f in fields(Counts))
"""The names of all units, in the order of the ledger's columns."""


def _sum(*parts: int | None) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEvent:
    """One measured, partly measured or unmeasurable use of a model; the ledger's unit."""

    id: str  # UUIDv7, hex with dashes
    instance_id: str
    run_id: str | None
    source: Source
    key: str  # exchange id, or the sentinel's sequence in decimal: unique per (instance, run, source)
    counts: Counts
    completeness: Completeness
    reason: str | None = None
    model_asked: str | None = None
    model_answered: str | None = None
    provider: str | None = None
    service_tier: str | None = None
    request_id: str | None = None  # the provider's id of its answer
    raw_usage: str | None = None  # the provider's usage object: JSON of numbers and keys only
    started_at_ns: int  # wall clock, nanoseconds since 1970 UTC
    ended_at_ns: int

    def __post_init__(self) -> None:
        """Hold the law that everything short of exact says why."""
        assert (self.completeness is Completeness.EXACT) == (self.reason is None), (
            "inexact needs a reason, exact has none"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One HTTP call as the gateway saw it: the facts around a usage event, and the row of a call that never left."""

    id: str
    instance_id: str
    run_id: str | None
    sent: Sent
    state: str  # "in_flight" | "ended"
    method: str
    path: str  # the upstream path, without token and query
    family: str  # the API family ("chat.completions") or "unknown"
    status: int | None = None  # the status the agent was given
    stream: bool | None = None
    reason: str | None = None
    model_asked: str | None = None
    max_tokens: int | None = None  # what a later charge needs: the caller's own bound ...
    choices: int | None = None  # ... the `n` asked for ...
    request_bytes: int | None = None  # ... and the sizes both ways
    response_bytes: int | None = None
    usage_asked_by_us: bool = False
    unsynced: bool = False  # released before its record was durable, because the journal could not be written
    retry_count: int | None = None
    started_at_ns: int
    ended_at_ns: int | None = None
    first_token_ns: int | None = None  # after started_at, monotonic
    latency_ns: int | None = None  # after started_at, monotonic
    retry_at_ns: int | None = None  # wall clock: when an answer that said "later" said we may come back


@dataclass(frozen=True, slots=True)
class Position:
    """How far a log has been folded: the segment's number (from 1) and the offset of the next unread byte in it."""

    segment: int = 1
    offset: int = 0
    skipping: bool = (
        False  # the offset lies inside a line too long to keep: its rest is skipped, not read as a line
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What one read of a log yields; committed in one transaction with the position behind it.

    `start` is the position that the read began at: a store whose position is another one refuses the whole batch, so
    that two readers of one log can never both count it. None skips that check.
    """

    log: str  # the log's name: "journal/<incarnation>" or "run/<run id>/out"
    position: Position
    start: Position | None = None
    events: tuple[UsageEvent, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    notes: tuple["Note", ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A finding that is not usage but must be seen: a malformed line, a gap, a conflict, a quarantined record.

    `instance_id` is "" where the finding belongs to no instance (a damaged stretch of a journal).
    """

    kind: str  # "malformed" | "conflict" | "gap" | "late" | "replay" | "quarantined" | "newer_schema"
    instance_id: str
    run_id: str | None
    at_ns: int
    detail: str  # one sentence without any of the agent's content
    count: int = 1  # how many findings of this kind the note stands for
