"""A streamed answer on its way: what goes on at once, what waits for the record, what the agent did not ask for.

Laws: every byte taken is given back once, in order, except the events that exist only because we asked for usage;
`kept_bytes` is always how many were taken and not yet given, so that a fault can hand them over; memory is bounded by
one event of 64 KiB. From the terminal event's first byte on, bytes are given as `held`.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from kt_gateway.decode.members import Members
from kt_gateway.decode.table import Dialect
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange import sse

# An event that can tell something: a usage object or finish reason that is not null (white space and the seams of
# multi-line data between), or the word error. A quote inside JSON text is escaped, so text cannot look like a member.
_GAP = rb"(?:\s|data:)*"
_USAGE = re.compile(rb'"usage"' + _GAP + rb":" + _GAP + rb"[^n\s]")
_DATA_LINE = re.compile(rb"(?:\A|[\r\n])data:")
_LINE_END = re.compile(rb"[\r\n]")
_FINISH = re.compile(rb'"finish_reason"' + _GAP + rb":" + _GAP + rb"[^n\s]")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Bytes to give on now, and bytes to hold from the terminal event on (`terminal` says that it came)."""

    now: bytes
    held: bytes = b""
    terminal: bool = False


class EventStream:
    """Reads an event stream as it passes; see the laws above."""

    def __init__(self, dialect: Dialect, tally: Tally, *, withhold_usage: bool) -> None:
        self._dialect = dialect
        self._tally = tally
        self._withhold = withhold_usage
        self._framer = sse.Framer()
        self._given = 0  # how much of the incomplete event has already been given on
        self._long: _LongEvent | None = None
        self._withheld_last = False

    @property
    def kept_bytes(self) -> int:
        """How many of the last bytes taken were not given back yet."""
        return len(self._framer.pending) - self._given

    def data(self, data: bytes, *, mono_ns: int) -> Outcome:
        """Take bytes of the stream."""
        if self._passes_whole(data):
            return Outcome(data)
        given: list[bytes] = []
        if self._long is not None:
            data = self._continue_long(data, given, mono_ns)
        self._framer.push(data)
        if self._framer.stray_newline() and not self._withheld_last:
            given.append(b"\n")
        while (event := self._framer.pop()) is not None:
            if self._is_terminal(event):
                self._tally.done = True
                held = event[self._given :] + self._framer.take_all()
                self._given = 0
                return Outcome(b"".join(given), held, terminal=True)
            given.append(self._fate(event, mono_ns))
        return self._incomplete(given)

    def _passes_whole(self, data: bytes) -> bool:
        return (
            self._framer.idle
            and self._long is None
            and self._tally.knows_the_answer
            and data.endswith((b"\n\n", b"\r\n\r\n"))
            and not self._telling(data)
            and self._dialect.terminal not in data
        )

    def _telling(self, data: bytes) -> bool:
        return _USAGE.search(data) is not None or _FINISH.search(data) is not None or b"error" in data

    def _is_terminal(self, event: bytes) -> bool:
        return self._dialect.terminal in event and (
            sse.begins_terminal(event, self._dialect.terminal) == sse.YES
        )

    def _fate(self, event: bytes, mono_ns: int) -> bytes:
        """Read an event and return what of it is still to be given on."""
        only_usage = self._read(event, mono_ns)
        given, self._given = self._given, 0
        self._withheld_last = self._withhold and only_usage and given == 0
        return sse.comments_of(event) if self._withheld_last else event[given:]

    def _read(self, event: bytes, mono_ns: int) -> bool:
        if self._tally.knows_the_answer and not self._telling(event):
            return False
        data, kind = sse.data_of(event)
        if data is None:
            return False
        if kind == b"error":
            self._tally.error = True
        document = _object(data)
        if document is None:
            return False
        finding = self._dialect.read(document)
        self._tally.take(finding, mono_ns=mono_ns)
        return finding.only_usage

    def _incomplete(self, given: list[bytes]) -> Outcome:
        pending = self._framer.pending
        if not pending:
            return Outcome(b"".join(given))
        if len(pending) > sse.EVENT_LIMIT_BYTES:
            return self._begin_long(given)
        likeness = self._likeness(pending)
        if likeness == sse.YES:
            self._tally.done = True
            held = self._framer.take_all()[self._given :]
            self._given = 0
            return Outcome(b"".join(given), held, terminal=True)
        if likeness == sse.NO and not self._withhold:
            given.append(bytes(pending[self._given :]))
            self._given = len(pending)
        return Outcome(b"".join(given))

    def _likeness(self, pending: bytearray) -> int:
        if pending.startswith(b"data: {") or len(pending) > 4096:
            return sse.NO
        return sse.begins_terminal(bytes(pending), self._dialect.terminal)

    def _begin_long(self, given: list[bytes]) -> Outcome:
        event = self._framer.take_all()
        given.append(event[self._given :])
        self._given = 0
        self._long = _LongEvent(self._dialect.members, event)
        return Outcome(b"".join(given))

    def _continue_long(self, data: bytes, given: list[bytes], mono_ns: int) -> bytes:
        assert self._long is not None
        end = self._long.feed(data)
        if end is None:
            given.append(data)
            return b""
        given.append(data[:end])
        self._close_long(mono_ns)
        return data[end:]

    def _close_long(self, mono_ns: int) -> None:
        assert self._long is not None
        long, self._long = self._long, None
        finding = self._dialect.read(long.document())
        self._tally.take(replace(finding, finished=long.finished, spoke=True), mono_ns=mono_ns)

    def end(self, *, mono_ns: int) -> bytes:
        """Take the end of the stream, proper or not; return what was still kept."""
        if self._long is not None:
            self._close_long(mono_ns)
        rest = self._framer.take_all()
        return self._fate(rest, mono_ns) if rest else b""


class _LongEvent:
    """An event too long to keep: its end is found, and of a one-line JSON object the members that matter."""

    def __init__(self, members: frozenset[str], beginning: bytes) -> None:
        self.finished = _FINISH.search(beginning) is not None
        self._recent = beginning[-64:]
        self._members = Members(members)
        self._end = sse.EventEnd()
        self._end.find(beginning)
        line = _DATA_LINE.search(beginning)
        self._line_over = line is None  # no data line in the first 64 KiB: nothing to read here
        self._line(beginning[line.end() :] if line else b"")

    def feed(self, data: bytes) -> int | None:
        """Take bytes; return how many of them still belong to the event once its end is among them."""
        end = self._end.find(data)
        seen = self._recent + (data if end is None else data[:end])
        self.finished = self.finished or _FINISH.search(seen) is not None
        self._recent = seen[-64:]
        self._line(data if end is None else data[:end])
        return end

    def _line(self, data: bytes) -> None:
        if self._line_over:
            return
        end = _LINE_END.search(data)
        self._line_over = end is not None
        self._members.feed(data[: end.start()] if end else data)

    def document(self) -> dict[str, Any]:
        """Return what was found of the event's object."""
        return self._members.document()


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
