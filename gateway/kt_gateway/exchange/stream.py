"""A streamed answer on its way: what goes on at once, what waits for the record, what the agent did not ask for.

Laws: every byte taken is given back once, in order, except the events that exist only because we asked for usage;
`kept_bytes` is always how many were taken and not yet given, so that a fault can hand them over; memory is bounded by
one event of 64 KiB. From the terminal event's first byte on, bytes are given as `held`; of a terminal event too long to
keep, its end is.
"""

import json
from dataclasses import replace
from typing import Any

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.finding import Finding
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange import duplicates, sse
from kt_gateway.exchange.long_event import LongEvent
from kt_gateway.exchange.outcome import Outcome

_NOTHING = Finding()


class EventStream:
    """Reads an event stream as it passes; see the laws above."""

    readable = True
    overlong = False

    def __init__(self, dialect: Dialect, tally: Tally, *, withhold_usage: bool) -> None:
        self._dialect = dialect
        self._tally = tally
        self._withhold = withhold_usage
        self._framer = sse.Framer()
        self._given = 0  # how much of the incomplete event has already been given on
        self._long: LongEvent | None = None
        self._tail = b""  # the end of what came of a long event, where it may have to be held
        self._withheld_last = False

    @property
    def kept_bytes(self) -> int:
        """How many of the last bytes taken were not given back yet."""
        return len(self._framer.pending) - self._given + len(self._tail)

    @property
    def streams(self) -> bool:
        """Plain text may begin like an event; it is no stream until an object came."""
        return self._tally.documents > 0

    def data(self, data: bytes, *, mono_ns: int) -> Outcome:
        """Take bytes of the stream."""
        if self._passes_whole(data):
            return Outcome(data)
        given: list[bytes] = []
        if self._long is not None:
            data = self._continue_long(data, given, mono_ns)
            if self._tally.done:
                held, self._tail = self._tail + data, b""
                return Outcome(b"".join(given), held, terminal=True)
        self._framer.push(data)
        if self._framer.stray_newline() and not self._withheld_last:
            given.append(b"\n")
        while (event := self._framer.pop()) is not None:
            finding = _NOTHING if self._is_marked(event) else self._read(event, mono_ns)
            if self._tally.done:
                held = event[self._given :] + self._framer.take_all()
                self._given = 0
                return Outcome(b"".join(given), held, terminal=True)
            given.append(self._fate(event, finding))
        return self._incomplete(given)

    def _passes_whole(self, data: bytes) -> bool:
        terminal = self._dialect.terminal
        return (
            self._framer.idle
            and self._long is None
            and self._tally.knows_the_answer
            and data.endswith((b"\n\n", b"\r\n\r\n"))
            and not self._dialect.telling(data)
            and (terminal is None or terminal not in data)
        )

    def _is_marked(self, event: bytes) -> bool:
        """Whether the event is the terminal one by the beginning of its data."""
        terminal = self._dialect.terminal
        if terminal is None or terminal not in event or sse.begins_terminal(event, terminal) != sse.YES:
            return False
        self._tally.done = True
        return True

    def _fate(self, event: bytes, finding: Finding) -> bytes:
        """Return what of an event is still to be given on."""
        given, self._given = self._given, 0
        self._withheld_last = self._withhold and finding.only_usage and given == 0
        return sse.comments_of(event) if self._withheld_last else event[given:]

    def _read(self, event: bytes, mono_ns: int) -> Finding:
        if self._tally.knows_the_answer and not self._dialect.telling(event):
            return _NOTHING
        data, kind = sse.data_of(event)
        if data is None:
            return _NOTHING
        if kind == b"error":
            self._tally.error = True
        document = parse(data)
        if document is None:
            return _NOTHING
        finding = self._dialect.read(document)
        self._tally.take(finding, mono_ns=mono_ns)
        if finding.usage is not None and duplicates.repeats(data, self._dialect.shape):
            self._tally.repeated = True
        if finding.terminal:
            self._tally.done = True
        return finding

    def _incomplete(self, given: list[bytes]) -> Outcome:
        pending = self._framer.pending
        if not pending:
            return Outcome(b"".join(given))
        if len(pending) > sse.EVENT_LIMIT_BYTES:
            return self._begin_long(given)
        if self._dialect.typed_terminal:
            return Outcome(b"".join(given))  # whether it is the terminal one shows at its end
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
        terminal = self._dialect.terminal
        if terminal is None or pending.startswith(b"data: {") or len(pending) > 4096:
            return sse.NO
        return sse.begins_terminal(bytes(pending), terminal)

    # -- events too long to keep -------------------------------------------------------------------------------
    def _begin_long(self, given: list[bytes]) -> Outcome:
        event = self._framer.take_all()
        self._long = LongEvent(self._dialect, event)
        self._give_long(event[self._given :], given)
        self._given = 0
        return Outcome(b"".join(given))

    def _give_long(self, data: bytes, given: list[bytes]) -> None:
        """Give on what came of a long event: all but the line ends that would complete it for its reader."""
        data = self._tail + data
        whole = len(data.rstrip(b"\r\n")) if self._dialect.typed_terminal else len(data)
        given.append(data[:whole])
        self._tail = data[whole:]

    def _continue_long(self, data: bytes, given: list[bytes], mono_ns: int) -> bytes:
        assert self._long is not None
        end = self._long.feed(data)
        if end is None:
            self._give_long(data, given)
            return b""
        self._close_long(mono_ns)
        if self._tally.done:
            self._tail += data[:end]
        else:
            given.append(self._tail + data[:end])
            self._tail = b""
        return data[end:]

    def _close_long(self, mono_ns: int) -> None:
        assert self._long is not None
        long, self._long = self._long, None
        finding = self._dialect.read(long.document())
        finished = finding.finished or long.finished
        self._tally.take(replace(finding, finished=finished, spoke=True), mono_ns=mono_ns)
        self._tally.repeated = self._tally.repeated or long.repeated
        self._tally.done = self._tally.done or finding.terminal

    def end(self, *, mono_ns: int) -> bytes:
        """Take the end of the stream, proper or not; return what was still kept."""
        tail, self._tail = self._tail, b""
        if self._long is not None:
            self._close_long(mono_ns)
        rest = self._framer.take_all()
        return tail + (self._fate(rest, self._read(rest, mono_ns)) if rest else b"")


def parse(data: bytes) -> dict[str, Any] | None:
    """Return a JSON object, None for anything else."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
