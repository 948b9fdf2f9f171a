"""The whole log of an instance as one sequence: Run after Run, its streams and the engine's remarks merged by time.

Every line comes with the position behind it; reading on from there gives each later line exactly once.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kt_ledger.records import TransitionRow
from kt_supervisor.engine.output.cursor import Cursor, Gap, Line
from kt_supervisor.engine.output.positions import BEGINNING, Position
from kt_supervisor.engine.output.run_logs import STREAMS, KnownRun
from kt_supervisor.engine.output.segments import earlier_bytes

ENGINE = "engine"
NAMES = {"out": "agent-out", "err": "agent-err", ENGINE: ENGINE}
"""Streams as this room calls them, and as the contract does."""

EVERYTHING = frozenset(NAMES)


@dataclass(frozen=True, slots=True)
class Shown:
    """One line of the log; `stream` as the contract names it, `position` behind it."""

    line: Line
    stream: str
    run: KnownRun | None
    position: Position

    @property
    def text(self) -> str:
        """Return the line as text; bytes that are no UTF-8 are replaced."""
        if self.line.gap is not None:
            return describe_gap(self.line.gap)
        return self.line.data.removesuffix(b"\r").decode("utf-8", "replace")


class Reading:
    """Reads on from `position`; `lines` may be called again for what came since, once it was read to its end."""

    def __init__(self, position: Position, *, streams: frozenset[str] = EVERYTHING) -> None:
        self.position = position
        self._streams = streams
        self._runs: list[KnownRun] = []
        self._at: KnownRun | None = None
        self._cursors: list[Cursor] = []

    def add_runs(self, runs: Sequence[KnownRun]) -> None:
        """Tell it of Runs, oldest first."""
        self._runs += [run for run in runs if run.number >= self.position.run]

    def lines(
        self, transitions: Sequence[TransitionRow], *, final: bool, unfinished: bool = False
    ) -> Iterator[Shown]:
        """Yield what is there.

        Args:
            transitions: all of them, from the instance's first; those that were told are passed over.
            final: the last Run that it knows of has ended, too.
            unfinished: show a last line that has no end yet.
        """
        engine = iter(self._remarks(transitions))
        remark = next(engine, None)
        for run, line in self._agent(final=final, unfinished=unfinished):
            while remark is not None and remark.at_ns <= line.at_ns:
                yield self._told(remark)
                remark = next(engine, None)
            if not line.unfinished:
                self._move(run, line)
            yield Shown(line, ENGINE if line.gap else NAMES[line.stream], run, self.position)
        while remark is not None:
            yield self._told(remark)
            remark = next(engine, None)

    def _move(self, run: KnownRun, line: Line) -> None:
        at = self.position  # built anew, not by `replace`: that costs more than the rest of a line
        if line.stream == "out":
            self.position = Position(run.number, line.place, at.err, at.transitions)
        else:
            self.position = Position(run.number, at.out, line.place, at.transitions)

    def _remarks(self, transitions: Sequence[TransitionRow]) -> list[Line]:
        if ENGINE not in self._streams:
            return []
        new = transitions[self.position.transitions :]
        return [Line(row.at_ns, ENGINE, describe(row).encode("utf-8", "replace"), BEGINNING) for row in new]

    def _told(self, remark: Line) -> Shown:
        self.position = replace(self.position, transitions=self.position.transitions + 1)
        return Shown(remark, ENGINE, self._at, self.position)

    def _agent(self, *, final: bool, unfinished: bool) -> Iterator[tuple[KnownRun, Line]]:
        while True:
            if self._at is None:
                if not self._runs:
                    return
                self._at = self._runs.pop(0)
                if (gap := self._enter(self._at)) is not None:
                    yield self._at, gap
            run, last = self._at, not self._runs
            streams = [
                cursor.lines(final=final or not last, unfinished=unfinished) for cursor in self._cursors
            ]
            for line in heapq.merge(*streams, key=lambda line: line.at_ns):
                yield run, line
            if not self._runs:
                return
            if last:
                continue  # it was not read to its end yet: its successor is only known since
            self._at = None

    def _enter(self, run: KnownRun) -> Line | None:
        """Begin with a Run; return what to tell where earlier ones are gone."""
        gap = None
        if (missed := run.number - self.position.run - 1) > 0:
            at_ns = run.segments("out").times(1).at(0)
            gap = Line(
                at_ns, "out", b"", BEGINNING, gap=Gap(missed_bytes=earlier_bytes(run.files), runs=missed)
            )
        if run.number != self.position.run:
            self.position = replace(self.position, run=run.number, out=BEGINNING, err=BEGINNING)
        begins = {"out": self.position.out, "err": self.position.err}
        self._cursors = [
            Cursor(run.segments(stream), begins[stream]) for stream in STREAMS if stream in self._streams
        ]
        return gap


def describe_gap(gap: Gap) -> str:
    """Return what is missing as one line."""
    much = "an unknown number of bytes" if gap.missed_bytes is None else f"{gap.missed_bytes} bytes"
    what = (
        f"{much} of {NAMES[gap.stream]}" if gap.stream else f"the output of {gap.runs} earlier runs, {much},"
    )
    return f"gap: {what} {'was' if gap.runs else 'were'} deleted to keep the disk cap (logs.cap)"


def describe(row: TransitionRow) -> str:
    """Return a transition as one line."""
    facts = {key: value for key, value in row.cause.items() if key != "kind"}
    plain = ("detail", "command", "why")  # these say by themselves what they are
    rest = ", ".join(str(value) if key in plain else f"{key} {value}" for key, value in facts.items())
    return f"{row.prior_state} -> {row.new_state} ({row.cause.get('kind', 'unknown')}{': ' if rest else ''}{rest})"
