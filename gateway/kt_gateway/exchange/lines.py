"""A streamed answer with one JSON object a line, on its way; also one object alone, in whatever layout it comes.

Laws as in `stream`: each byte is given back once, in order; memory is bounded by one line of 64 KiB; the line that ends
the stream is held. A line that is not whole yet is kept: whether it is the last one shows at its end.
"""

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.members import Members
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange import duplicates, sse
from kt_gateway.exchange.document import Document
from kt_gateway.exchange.outcome import Outcome
from kt_gateway.exchange.stream import parse


class LineStream:
    """Reads lines of JSON as they pass."""

    def __init__(self, dialect: Dialect, tally: Tally, *, typed: bool) -> None:
        """Take the dialect and the tally; `typed` says that the content type announces lines."""
        self._dialect = dialect
        self._tally = tally
        self._typed = typed
        self._pending = bytearray()
        self._searched = 0
        self._long: Members | None = None
        self._alone: Document | None = None  # the body is one object over several lines
        self._lines = 0
        self._unread = False
        self.overlong = False

    @property
    def kept_bytes(self) -> int:
        """How many of the last bytes taken were not given back yet."""
        return len(self._pending)

    @property
    def streams(self) -> bool:
        """Whether there is, or by its type would be, more than one line."""
        return self._alone is None and (self._typed or self._lines > 1)

    @property
    def readable(self) -> bool:
        """Whether every line was an object."""
        return self._alone.readable if self._alone is not None else not self._unread

    def data(self, data: bytes, *, mono_ns: int) -> Outcome:
        """Take bytes of the stream."""
        if self._alone is not None:
            return self._alone.data(data, mono_ns=mono_ns)
        if self._passes_whole(data):
            self._lines += 1
            return Outcome(data)
        given: list[bytes] = []
        if self._long is not None:
            data = self._continue_long(data, given, mono_ns)
        self._pending += data
        while not self._tally.done and (end := self._pending.find(b"\n", self._searched) + 1):
            line = bytes(self._pending[:end])
            if self._lines == 0 and line.strip() and not line.rstrip().endswith(b"}"):
                return self._turn_out_alone(given, mono_ns)
            self._read(line, mono_ns)
            if not self._tally.done:
                given.append(line)
                del self._pending[:end]
                self._searched = 0
        if self._tally.done:
            held = bytes(self._pending)
            self._pending.clear()
            return Outcome(b"".join(given), held, terminal=True)
        self._searched = len(self._pending)
        if len(self._pending) > sse.EVENT_LIMIT_BYTES:
            self._long = Members(self._dialect.members, inside=self._dialect.inside)
            self._long.feed(bytes(self._pending))
            given.append(bytes(self._pending))
            self._pending.clear()
            self._searched = 0
        return Outcome(b"".join(given))

    def _passes_whole(self, data: bytes) -> bool:
        return (
            not self._pending
            and self._long is None
            and self._tally.knows_the_answer
            and data.endswith(b"\n")
            and not self._dialect.telling(data)
        )

    def _turn_out_alone(self, given: list[bytes], mono_ns: int) -> Outcome:
        self._alone = Document(self._dialect, self._tally)
        whole = bytes(self._pending)
        self._pending.clear()
        given.append(self._alone.data(whole, mono_ns=mono_ns).now)
        return Outcome(b"".join(given))

    def _read(self, line: bytes, mono_ns: int) -> None:
        text = line.strip().removeprefix(sse.BOM)
        if not text:
            return
        self._lines += 1
        if self._tally.knows_the_answer and not self._dialect.telling(line):
            return
        document = parse(text)
        if document is None:
            self._unread = True
            return
        finding = self._dialect.read(document)
        self._tally.take(finding, mono_ns=mono_ns)
        if finding.usage is not None and duplicates.repeats(text, self._dialect.shape):
            self._tally.repeated = True
        self._tally.done = self._tally.done or finding.terminal

    def _continue_long(self, data: bytes, given: list[bytes], mono_ns: int) -> bytes:
        assert self._long is not None
        end = data.find(b"\n") + 1
        self._long.feed(data[:end] if end else data)
        if not end:
            given.append(data)
            return b""
        self._close_long(mono_ns)
        if self._tally.done:
            return data  # its end is held
        given.append(data[:end])
        return data[end:]

    def _close_long(self, mono_ns: int) -> None:
        assert self._long is not None
        long, self._long = self._long, None
        self._lines += 1
        self._unread = self._unread or not long.complete
        self.overlong = self.overlong or long.is_overlong
        finding = self._dialect.read(long.document())
        self._tally.take(finding, mono_ns=mono_ns)
        self._tally.repeated = self._tally.repeated or long.is_repeated
        self._tally.done = self._tally.done or finding.terminal

    def end(self, *, mono_ns: int) -> bytes:
        """Take the end of the stream, proper or not; return what was still kept."""
        if self._alone is not None:
            return self._alone.end(mono_ns=mono_ns)
        if self._long is not None:
            self._close_long(mono_ns)
        rest = bytes(self._pending)
        self._pending.clear()
        self._read(rest, mono_ns)
        return rest
