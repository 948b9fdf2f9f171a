"""Where a body ends: by length, by chunks, or with its connection (RFC 9112 section 6); and how we frame it again.

A decoder is fed bytes and returns (body bytes, bytes behind the body). Strict: one way of framing, one length.
"""

import re
from typing import Protocol

from kt_gateway.http1 import head

MAX_CHUNK_LINE_BYTES = 1024
MAX_TRAILER_BYTES = 16 << 10
LAST_CHUNK = b"0\r\n"

_LENGTH = re.compile(rb"\d{1,18}")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")


class Body(Protocol):
    """A decoder of one body."""

    done: bool
    trailers: head.Headers

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Take bytes; return (body bytes, bytes that belong to what follows). Raises BadMessage."""
        ...


class Sized:
    """A body of `left` more bytes."""

    trailers: head.Headers = ()

    def __init__(self, left: int) -> None:
        self.left = left
        self.done = left == 0

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Take bytes; return (body bytes, the rest)."""
        if len(data) < self.left:
            self.left -= len(data)
            return data, b""
        body, rest = data[: self.left], data[self.left :]
        self.left = 0
        self.done = True
        return body, rest


class UntilClose:
    """A body that ends with its connection; whoever sees the end decides what it means."""

    trailers: head.Headers = ()
    done = False

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Take bytes; all of them are the body's."""
        return data, b""


class Chunked:
    """A chunked body; chunk extensions are dropped, trailers kept."""

    def __init__(self) -> None:
        self.done = False
        self.trailers: head.Headers = ()
        self._pending = b""  # bytes of an incomplete line or of the trailer section
        self._left = 0  # bytes of the current chunk's data still to come
        self._state = "line"  # "line" | "data" | "data end" | "trailers"

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Take bytes; return (body bytes, the rest). Raises BadMessage."""
        if self._pending:
            data, self._pending = self._pending + data, b""
        pieces: list[bytes] = []
        at = 0
        while at < len(data) and not self.done:
            if self._state == "data":
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._state = "data end"
                continue
            took = self._take_line(data, at)
            if not took:
                self._pending = data[at:]
                return b"".join(pieces), b""
            at += took
        return (pieces[0] if len(pieces) == 1 else b"".join(pieces)), data[at:]

    def _take_line(self, data: bytes, at: int) -> int:
        """Take one line of framing at `at`; return its length, 0 while it is incomplete."""
        if self._state == "data end":
            return self._take_data_end(data, at)
        if self._state == "trailers":
            return self._take_trailers(data, at)
        end = data.find(b"\r\n", at, at + MAX_CHUNK_LINE_BYTES)
        if end < 0:
            if len(data) - at >= MAX_CHUNK_LINE_BYTES or b"\n" in data[at:]:
                raise head.BadMessage(400, "got a chunk size line that is too long or ends in a bare LF")
            return 0
        found = _CHUNK_LINE.fullmatch(data, at, end)
        if found is None:
            raise head.BadMessage(400, "got a malformed chunk size")
        self._left = int(found[1], 16)
        self._state = "data" if self._left else "trailers"
        return end + 2 - at

    def _take_data_end(self, data: bytes, at: int) -> int:
        if len(data) - at < 2:
            return 0
        if data[at : at + 2] != b"\r\n":
            raise head.BadMessage(400, "got a chunk that is longer than its size says")
        self._state = "line"
        return 2

    def _take_trailers(self, data: bytes, at: int) -> int:
        if data.startswith(b"\r\n", at):
            self.done = True
            return 2
        end = data.find(b"\r\n\r\n", at, at + MAX_TRAILER_BYTES)
        if end < 0:
            if len(data) - at >= MAX_TRAILER_BYTES:
                raise head.BadMessage(431, f"got trailers of more than {MAX_TRAILER_BYTES} bytes")
            return 0
        self.trailers = head.fields(data[at:end])
        self.done = True
        return end + 4 - at


def chunk(data: bytes) -> bytes:
    """Return `data` as one chunk; nothing for no data, since an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def last_chunk(trailers: head.Headers) -> bytes:
    """Return what ends a chunked body."""
    return LAST_CHUNK + b"".join(b"%b: %b\r\n" % field for field in trailers) + b"\r\n"


def of_request(start: head.RequestStart) -> Body | None:
    """Return the decoder of a request's body; None where it has none.

    Raises:
        BadMessage: the length is ambiguous, malformed, or coded in a way that we do not forward.
    """
    codings = head.values(start.headers, b"transfer-encoding")
    lengths = head.values(start.headers, b"content-length")
    if codings and lengths:
        raise head.BadMessage(400, "got both Transfer-Encoding and Content-Length")
    if codings:
        if start.minor == 0:
            raise head.BadMessage(400, "got Transfer-Encoding in HTTP/1.0")
        if len(codings) > 1 or codings[0].lower() != b"chunked":
            raise head.BadMessage(501, "got a transfer coding other than chunked")
        return Chunked()
    if not lengths:
        return None
    return Sized(_length(lengths))


def of_response(start: head.ResponseStart, *, method: bytes) -> Body | None:
    """Return the decoder of a response's body; None where it has none (RFC 9112 section 6.3).

    Raises:
        BadMessage: 502, the length is ambiguous or malformed.
    """
    if method == b"HEAD" or start.status in (204, 304):
        return None
    try:
        codings = head.values(start.headers, b"transfer-encoding")
        if codings:
            if len(codings) > 1 or codings[0].lower() != b"chunked":
                raise head.BadMessage(502, "got a transfer coding other than chunked from the provider")
            return Chunked()
        lengths = head.values(start.headers, b"content-length")
        return Sized(_length(lengths)) if lengths else UntilClose()
    except head.BadMessage as bad:
        raise head.BadMessage(502, bad.why) from bad


def _length(values: list[bytes]) -> int:
    if len(set(values)) > 1:
        raise head.BadMessage(400, "got several Content-Length headers that differ")
    if _LENGTH.fullmatch(values[0]) is None:
        raise head.BadMessage(400, "got a Content-Length that is not a number")
    return int(values[0])
