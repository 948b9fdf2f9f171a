"""From a Run's standard output to usage events: reads sentinel lines, wherever the pieces and segments are cut.

What is remembered of a Run between two engines is its position alone. Replays, conflicts, late lines and missing
sequences are found by the store, which knows what it has counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kt_ledger import ids
from kt_ledger.lines import LIMIT_BYTES, Line, LineSplitter
from kt_ledger.sentinel import PREFIX, Malformed, Usage, read_line
from kt_ledger.values import Completeness, Folded, Note, Position, Source, UsageEvent


def log_name(run_id: str) -> str:
    """Return the name under which a Run's standard output is folded."""
    return f"run/{run_id}/out"


class RunReader:
    """Reads one Run's standard output from `position` on; feed it the bytes at `wanted`, in order.

    `position` is how far the log can be committed: the start of a line that has not ended yet, in this segment or an
    earlier one. `wanted` is the next byte to give.
    """

    def __init__(
        self,
        instance_id: str,
        run_id: str,
        *,
        position: Position | None = None,
        limit_bytes: int = LIMIT_BYTES,
        new_id: Callable[[], str] = ids.new_id,
    ) -> None:
        self.log = log_name(run_id)
        self.position = position or Position()
        self.stopped = False
        self._instance_id = instance_id
        self._run_id = run_id
        self._new_id = new_id
        self._limit_bytes = limit_bytes
        self._yielded = self.position
        self._segment, self._base = self.position.segment, 0
        self._splitter = self._splitter_at(self.position)

    @property
    def wanted(self) -> Position:
        """Return the place of the next byte to give."""
        return Position(self._segment, self._splitter.fed - self._base)

    def feed(self, data: bytes, *, at_ns: int, final: bool = False) -> Folded | None:  # noqa: ARG002
        """Return what `data` completes, or None where it completes nothing.

        Args:
            data: bytes of the current segment, from `wanted` on.
            at_ns: the wall-clock time that the lines are given, in nanoseconds.
            final: whether the segment ends here; a line may go on in the next one.
        """
        return self._folded(self._splitter.feed(data), at_ns=at_ns)

    def next_segment(self) -> None:
        """Go on at the beginning of the next segment."""
        self._segment += 1
        self._base = self._splitter.fed
        self._move()

    def clamp(self, size: int, *, at_ns: int) -> Folded:
        """Go back to the end of a segment that is shorter than what was read of it, and say so."""
        detail = f"{self.log}: segment {self._segment} is shorter than what was already read of it"
        self._restart(Position(self._segment, size))
        return self._batch((), (self._note("gap", detail, at_ns),))

    def missing(self, *, at_ns: int) -> Folded:
        """Go on in the next segment because this one is gone, and say so."""
        detail = f"{self.log}: segment {self._segment} is gone"
        self._restart(Position(self._segment + 1, 0))
        return self._batch((), (self._note("gap", detail, at_ns),))

    def finish(self, *, at_ns: int) -> Folded | None:
        """Return what the last line holds, where the log ended without a final newline."""
        tail = self._splitter.finish()
        return self._folded([tail] if tail else [], at_ns=at_ns)

    def _restart(self, position: Position) -> None:
        self.position = position
        self._segment, self._base = position.segment, 0
        self._splitter = self._splitter_at(position)

    def _splitter_at(self, position: Position) -> LineSplitter:
        return LineSplitter(
            limit_bytes=self._limit_bytes, marker=PREFIX, skipping=position.skipping, fed=position.offset
        )

    def _move(self) -> None:
        """Let `position` follow, unless the unfinished line began in an earlier segment."""
        offset = self._splitter.safe - self._base
        if offset >= 0:
            self.position = Position(self._segment, offset, self._splitter.skipping)

    def _folded(self, lines: Sequence[Line], *, at_ns: int) -> Folded | None:
        events, malformed, latest = [], 0, ""
        for line in lines:
            found = read_line(line.data, truncated=line.truncated)
            if isinstance(found, Usage):
                events.append(self._event(found, at_ns))
            elif isinstance(found, Malformed):
                malformed += 1
                latest = found.reason
        self._move()
        if not events and not malformed and self.position == self._yielded:
            return None
        note = self._note("malformed", f"a usage line could not be read: {latest}", at_ns)
        return self._batch(events, (replace(note, count=malformed),) if malformed else ())

    def _batch(self, events: Sequence[UsageEvent], notes: Sequence[Note]) -> Folded:
        start, self._yielded = self._yielded, self.position
        return Folded(
            log=self.log, start=start, position=self.position, events=tuple(events), notes=tuple(notes)
        )

    def _event(self, usage: Usage, at_ns: int) -> UsageEvent:
        return UsageEvent(
            id=self._new_id(),
            instance_id=self._instance_id,
            run_id=self._run_id,
            source=Source.SELF_REPORTED,
            key=str(usage.sequence),
            counts=usage.counts,
            completeness=Completeness.EXACT,
            model_answered=usage.model,
            request_id=usage.request_id,
            started_at_ns=at_ns,
            ended_at_ns=at_ns,
        )

    def _note(self, kind: str, detail: str, at_ns: int) -> Note:
        return Note(kind=kind, instance_id=self._instance_id, run_id=self._run_id, at_ns=at_ns, detail=detail)
