"""A streamed answer that is one JSON array, element by element, on its way.

Google's streaming methods answer so where nobody asked for server-sent events. Elements go on as they come; the bracket
that closes the array is held: it is what ends the stream. Memory is bounded by one element of 64 KiB.
"""

import re

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.members import Members
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange import duplicates, sse
from kt_gateway.exchange.outcome import Outcome
from kt_gateway.exchange.stream import parse

# A run up to the next byte that matters; strings that end in this chunk are skipped whole, in C.
_RUN = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


class ArrayStream:
    """Reads the elements of an array as they pass."""

    kept_bytes = 0
    streams = True

    def __init__(self, dialect: Dialect, tally: Tally) -> None:
        self._dialect = dialect
        self._tally = tally
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._element = bytearray()
        self._long: Members | None = None
        self._finished = False
        self._unread = False
        self.overlong = False

    @property
    def readable(self) -> bool:
        """Whether the array was closed, and its elements were objects."""
        return self._tally.done and not self._unread

    def data(self, data: bytes, *, mono_ns: int) -> Outcome:
        """Take bytes of the array."""
        at, begun, end = 0, 0 if self._depth > 1 else -1, len(data)
        while at < end:
            if self._in_string:
                at = self._skip_string(data, at)
                continue
            run = _RUN.match(data, at)
            assert run is not None
            at = run.end()
            if at == end:
                break
            byte = data[at : at + 1]
            if byte == b'"':
                self._in_string = True
            elif byte in (b"{", b"["):
                if self._depth == 1:
                    begun = at
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 1:
                    self._keep(data[begun : at + 1])
                    self._close(mono_ns)
                    begun = -1
                elif self._depth <= 0:
                    self._tally.done = True
                    return Outcome(data[:at], data[at:], terminal=True)
            at += 1
        if begun >= 0:
            self._keep(data[begun:])
        return Outcome(data)

    def _skip_string(self, data: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            at += 1
        stop = _STRING.match(data, at)
        assert stop is not None
        at = stop.end()
        if at < len(data):
            self._escaped = data[at : at + 1] == b"\\"  # its partner is in the next chunk
            self._in_string = self._escaped
            at += 1
        return at

    def _keep(self, data: bytes) -> None:
        if self._long is not None:
            self._finished = self._finished or self._dialect.finish.search(data) is not None
            self._long.feed(data)
            return
        self._element += data
        if len(self._element) > sse.EVENT_LIMIT_BYTES:
            self._long = Members(self._dialect.members, inside=self._dialect.inside)
            whole = bytes(self._element)
            self._element.clear()
            self._keep(whole)

    def _close(self, mono_ns: int) -> None:
        if self._long is not None:
            long, self._long = self._long, None
            finding = self._dialect.read(long.document())
            self.overlong = self.overlong or long.is_overlong
            self._tally.repeated = self._tally.repeated or long.is_repeated
            self._tally.finished = self._tally.finished or self._finished
            self._tally.take(finding, mono_ns=mono_ns)
            return
        text = bytes(self._element)
        self._element.clear()
        if self._tally.knows_the_answer and not self._dialect.telling(text):
            return
        document = parse(text)
        if document is None:
            self._unread = True
            return
        finding = self._dialect.read(document)
        self._tally.take(finding, mono_ns=mono_ns)
        if finding.usage is not None and duplicates.repeats(text, self._dialect.shape):
            self._tally.repeated = True

    def end(self, *, mono_ns: int) -> bytes:  # noqa: ARG002 (the shape of a reader)
        """Take the end of the body, proper or not."""
        return b""
