"""Where a reading begins: after a position, since a moment, with the last lines, within one Run; or all of these."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kt_ledger.records import TransitionRow
from kt_supervisor.engine.output import seeking
from kt_supervisor.engine.output.positions import BEGINNING, Place, Position
from kt_supervisor.engine.output.reading import ENGINE, EVERYTHING, Reading
from kt_supervisor.engine.output.run_logs import STREAMS, KnownRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What somebody wants to read; `tail` counts lines, `since_ns` is wall clock, `run` an id."""

    follow: bool = False
    tail: int | None = None
    since_ns: int | None = None
    streams: frozenset[str] = EVERYTHING
    run: str | None = None
    after: Position = field(default_factory=Position)
    unfinished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What there is to read at one moment; `final`: the last of the Runs has ended."""

    runs: Sequence[KnownRun]
    transitions: Sequence[TransitionRow]
    final: bool

    def within(self, run_id: str | None) -> "Log":
        """Return what belongs to one Run: a transition does from the Run's intention on, until the next one's."""
        if run_id is None:
            return self
        chosen = [at for at, run in enumerate(self.runs) if run.id == run_id]
        if not chosen:
            return replace(self, runs=(), transitions=())
        [at] = chosen
        last = at + 1 == len(self.runs)
        ends_ns = None if last else made_at_ns(self.runs[at + 1].id)
        told = [row for row in self.transitions if ends_ns is None or row.at_ns < ends_ns]
        return Log(runs=[self.runs[at]], transitions=told, final=self.final or not last)


def begin(query: Query, log: Log) -> tuple[Reading, int]:
    """Return a reading that stands where the query begins, and how many lines of it to pass over."""
    lower = query.after
    if query.run is not None and log.runs:
        made_ns = made_at_ns(log.runs[0].id)
        first = Position(log.runs[0].number, transitions=_before(log.transitions, made_ns))
        lower = max(lower, first)
    if query.since_ns is not None:
        lower = max(lower, _since(log, query.since_ns, query.streams))
    if query.tail is None:
        return _reading(lower, query, log), 0
    start = _last(log, query.tail, query.streams, lower)
    lines = sum(
        not shown.line.part and shown.line.gap is None
        for shown in _reading(start, query, log).lines(
            log.transitions, final=log.final, unfinished=query.unfinished
        )
    )
    return _reading(start, query, log), max(0, lines - query.tail)


def made_at_ns(run_id: str) -> int:
    """Return when an id was made: its first 48 bits are milliseconds (RFC 9562, section 5.7); 0 for no such id."""
    try:
        return (uuid.UUID(run_id).int >> 80) * 1_000_000
    except ValueError:
        return 0


def _reading(start: Position, query: Query, log: Log) -> Reading:
    reading = Reading(start, streams=query.streams)
    reading.add_runs(log.runs)
    return reading


def _before(transitions: Sequence[TransitionRow], at_ns: int) -> int:
    return sum(row.at_ns < at_ns for row in transitions)


def _since(log: Log, wall_ns: int, streams: frozenset[str]) -> Position:
    told = _before(log.transitions, wall_ns)
    for at, run in enumerate(log.runs):
        final = log.final or at + 1 < len(log.runs)
        places = {
            stream: seeking.since(run.segments(stream), wall_ns) for stream in STREAMS if stream in streams
        }
        if any(place is not None for place in places.values()):
            if run is log.runs[0] and all(place in (None, BEGINNING) for place in places.values()):
                return Position(transitions=told)
            ends = {
                stream: place or seeking.last_lines(run.segments(stream), 0, final=final)[0]
                for stream, place in places.items()
            }
            return Position(run.number, ends.get("out", BEGINNING), ends.get("err", BEGINNING), told)
    if not log.runs:
        return Position(transitions=told)
    return replace(_last(log, 0, streams, Position()), transitions=told)


def _last(log: Log, count: int, streams: frozenset[str], lower: Position) -> Position:
    """Return a position with at least the last `count` lines behind it, as far as there are that many."""
    told = max(lower.transitions, len(log.transitions) - (count if ENGINE in streams else 0))
    found = 0
    for at, run in reversed(list(enumerate(log.runs))):
        if run.number < lower.run:
            break
        final = log.final or at + 1 < len(log.runs)
        begins = lower if run.number == lower.run else Position()
        places: dict[str, Place] = {"out": begins.out, "err": begins.err}
        for stream in STREAMS:
            if stream in streams:
                segments = run.segments(stream)
                places[stream], lines = seeking.last_lines(segments, count, final=final, lower=places[stream])
                found += lines
        start = Position(run.number, places["out"], places["err"], told)
        if found >= count:
            return start
    return replace(lower, transitions=told)
