"""From a gateway's journal to exchanges and usage events: `open` and `close` become one row, whoever died in between.

What is open when a reader begins is in the store (`Store.open_exchanges`); it is given in, so that a close finds its
open across restarts of the engine. Once nobody writes the journal any more and it was read to its end, what is still
open is lost: it becomes `unknown` with a reason, never nothing and never zero.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kt_ledger import journal, journal_facts
from kt_ledger.journal_facts import Fields
from kt_ledger.values import Exchange, Folded, Note, Position, Sent, UsageEvent

_NO_INSTANCE = ""


def log_name(incarnation: str) -> str:
    """Return the name under which a gateway incarnation's journal is folded."""
    return f"journal/{incarnation}"


@dataclass(slots=True)
class _Begun:
    """An exchange in flight: its open record, and whether bytes have left."""

    fields: Fields
    sent: bool


@dataclass(slots=True)
class _Batch:
    """What one piece yields; `begun` are the exchanges in flight that it has news of, in order."""

    at_ns: int
    events: list[UsageEvent] = field(default_factory=list)
    ended: list[Exchange] = field(default_factory=list)
    begun: dict[str, None] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def note(self, kind: str, detail: str, *, instance_id: str = _NO_INSTANCE, count: int = 1) -> None:
        self.notes.append(
            Note(
                kind=kind, instance_id=instance_id, run_id=None, at_ns=self.at_ns, detail=detail, count=count
            )
        )

    def __bool__(self) -> bool:
        return bool(self.events or self.ended or self.begun or self.notes)


class JournalReader:
    """Reads one incarnation's journal from `position` on; feed it the bytes at `wanted`, again where it must wait.

    `open_exchanges` are those that the store still has in flight for this log. `stopped` while a later version's
    record is what comes next: nothing behind it is read, and nothing open is given up.
    """

    def __init__(
        self,
        incarnation: str,
        *,
        position: Position | None = None,
        open_exchanges: Iterable[Exchange] = (),
    ) -> None:
        self.log = log_name(incarnation)
        self.position = position or Position()
        self.stopped = False
        self._told = False
        self._yielded = self.position
        self._open = {
            exchange.id: _Begun(journal_facts.opened(exchange), exchange.sent is Sent.YES)
            for exchange in open_exchanges
        }
        self._steps: dict[int, Callable[[Fields, _Batch], None]] = {
            journal.OPEN: self._opened,
            journal.SENT: self._sent,
            journal.CLOSE: self._closed,
            journal.LOCAL: self._local,
            journal.NOTE: self._noted,
        }

    @property
    def wanted(self) -> Position:
        """Return the place of the next byte to give: nothing is kept of what could not be read yet."""
        return self.position

    def feed(self, data: bytes, *, at_ns: int, final: bool = False) -> Folded | None:
        """Return what the whole records in `data` mean, or None where there is none.

        Args:
            data: bytes of the current segment, from `wanted` on.
            at_ns: the wall-clock time for findings, in nanoseconds.
            final: the segment ends with `data`, and nobody writes it any more.
        """
        batch = _Batch(at_ns)
        segment, base = self.position.segment, self.position.offset
        end = base
        self.stopped = False
        for found in journal.read(data, base=base, final=final):
            if isinstance(found, journal.NewerMajor):
                self._stop(found, batch)
                break
            if isinstance(found, journal.Damage):
                batch.note("quarantined", self._damage(found))
            elif step := self._steps.get(found.type):
                step(found.fields, batch)
            end = found.end
        self.position = Position(segment, end)
        return self._folded(batch)

    def next_segment(self) -> None:
        """Go on at the beginning of the next segment."""
        self.position = Position(self.position.segment + 1, 0)

    def clamp(self, size: int, *, at_ns: int) -> Folded:
        """Go back to the end of a segment that is shorter than what was read of it, and say so."""
        return self._gap(Position(self.position.segment, size), "is shorter than what was read of it", at_ns)

    def missing(self, *, at_ns: int) -> Folded:
        """Go on in the next segment because this one is gone, and say so."""
        return self._gap(Position(self.position.segment + 1, 0), "is gone", at_ns)

    def finish(self, *, at_ns: int) -> Folded | None:
        """Return what becomes of all that is still open; call once the journal's lock was free and it was read."""
        batch = _Batch(at_ns)
        for begun in self._open.values():
            ended, event = journal_facts.lost(begun.fields, sent=begun.sent, at_ns=at_ns)
            batch.ended.append(ended)
            batch.events.append(event)
        self._open.clear()
        return self._folded(batch)

    def _opened(self, fields: Fields, batch: _Batch) -> None:
        if not journal_facts.whole(fields, at="at_ns"):
            batch.note("quarantined", "an open record lacks its id, instance or time")
            return
        x = journal_facts.text(fields, "x") or ""
        self._open[x] = _Begun(fields, sent=False)
        batch.begun[x] = None

    def _sent(self, fields: Fields, batch: _Batch) -> None:
        x = journal_facts.text(fields, "x") or ""
        begun = self._open.get(x)
        if begun is None:
            batch.note("quarantined", "a request has left whose open record could not be read")
            return
        begun.sent = True
        batch.begun[x] = None

    def _closed(self, fields: Fields, batch: _Batch) -> None:
        x = journal_facts.text(fields, "x") or ""
        begun = self._open.pop(x, None)
        if begun is None and not journal_facts.whole(fields, at="opened_at_ns"):
            batch.note("quarantined", "a close record has no open one and lacks what it needs to stand alone")
            return
        ended = journal_facts.closed(fields, begun.fields if begun else None)
        batch.ended.append(ended)
        if ended.sent is not Sent.NO:
            batch.events.append(journal_facts.usage(ended, fields))

    def _local(self, fields: Fields, batch: _Batch) -> None:
        if not journal_facts.whole(fields, at=journal_facts.local_start(fields)):
            batch.note("quarantined", "a local record lacks its id, instance or time")
            return
        exchange = journal_facts.local(fields)
        self._open.pop(exchange.id, None)
        batch.ended.append(exchange)

    def _noted(self, fields: Fields, batch: _Batch) -> None:
        at_ns = journal_facts.natural(fields, "at_ns")
        batch.notes.append(
            Note(
                kind=journal_facts.text(fields, "kind", limit=64) or "note",
                instance_id=journal_facts.text(fields, "instance") or _NO_INSTANCE,
                run_id=journal_facts.text(fields, "run"),
                at_ns=batch.at_ns if at_ns is None else at_ns,
                detail=journal_facts.text(fields, "detail") or "",
                count=journal_facts.natural(fields, "count") or 1,
            )
        )

    def _stop(self, found: journal.NewerMajor, batch: _Batch) -> None:
        """Stop before a later version's record, and say so once."""
        self.stopped = True
        if self._told:
            return
        self._told = True
        version = found.found.decode("ascii")
        batch.note(
            "newer_schema",
            f"{self.log}: segment {self.position.segment}, offset {found.offset}: records of format {version}, "
            "which a later kt has written — reading stops here; run that version",
        )

    def _damage(self, found: journal.Damage) -> str:
        return (
            f"{self.log}: segment {self.position.segment}, bytes {found.offset} to {found.end}: {found.why}; "
            "skipped and kept in the file"
        )

    def _gap(self, position: Position, what: str, at_ns: int) -> Folded:
        batch = _Batch(at_ns)
        batch.note("gap", f"{self.log}: segment {self.position.segment} {what}")
        self.position = position
        folded = self._folded(batch)
        assert folded is not None
        return folded

    def _folded(self, batch: _Batch) -> Folded | None:
        if not batch and self.position == self._yielded:
            return None
        start, self._yielded = self._yielded, self.position
        begun = [self._open[x] for x in batch.begun if x in self._open]
        in_flight = [journal_facts.in_flight(one.fields, sent=one.sent) for one in begun]
        return Folded(
            log=self.log,
            start=start,
            position=self.position,
            events=tuple(batch.events),
            exchanges=(*batch.ended, *in_flight),
            notes=tuple(batch.notes),
        )
