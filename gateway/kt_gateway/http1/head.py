"""Message heads: taken off a buffer, checked strictly, kept byte for byte.

Strict where leniency lets two parsers disagree (request smuggling, RFC 9112 section 11.2): bare CR or LF, NUL and
other controls, whitespace before a colon, folded lines, and heads over 64 KiB are refused. Knows nothing of bodies.
"""

import re
from dataclasses import dataclass

MAX_HEAD_BYTES = 64 << 10
"""nginx takes 32 KiB, Node 16 KiB, Go 1 MiB; agents were seen to send at most 6 KiB."""

Headers = tuple[tuple[bytes, bytes], ...]

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb"{1,32}) ([^\x00-\x20\x7f-\xff]+) HTTP/(\d)\.(\d)")
_STATUS_LINE = re.compile(rb"HTTP/1\.(\d) ([1-9]\d\d)(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?")
_FIELD = re.compile(rb"(" + _TOKEN + rb"+):([^\x00-\x08\x0a-\x1f\x7f]*)")
_BARE_LF = re.compile(rb"(?<!\r)\n")


class BadMessage(Exception):
    """Bytes that are not HTTP as we forward it; `status` is what a client is told, `why` a sentence without content."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


@dataclass(frozen=True, slots=True)
class RequestStart:
    """A request's head; `minor` is its HTTP/1.x version, `size` its length in bytes."""

    method: bytes
    target: bytes
    minor: int
    headers: Headers
    size: int


@dataclass(frozen=True, slots=True)
class ResponseStart:
    """A response's head."""

    status: int
    reason: bytes
    minor: int
    headers: Headers


def take_request(buffer: bytearray) -> RequestStart | None:
    """Take one request head off `buffer`; None while it is incomplete.

    Raises:
        BadMessage: 400, 431 or 505.
    """
    while buffer.startswith(b"\r\n"):
        del buffer[:2]  # RFC 9112 section 2.2: empty lines before a request line are ignored
    block = _take_block(buffer)
    if block is None:
        return None
    line, _, rest = block.partition(b"\r\n")
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise BadMessage(400, "got a malformed request line, wanted `METHOD /path HTTP/1.1`")
    method, target, major, minor = found.groups()
    if major != b"1":
        raise BadMessage(505, "got another major version of HTTP, wanted HTTP/1.1")
    return RequestStart(method, target, min(int(minor), 1), fields(rest), len(block) + 4)


def take_response(buffer: bytearray) -> ResponseStart | None:
    """Take one response head off `buffer`; None while it is incomplete.

    Raises:
        BadMessage: 502.
    """
    try:
        block = _take_block(buffer)
        if block is None:
            return None
        line, _, rest = block.partition(b"\r\n")
        found = _STATUS_LINE.fullmatch(line)
        if found is None:
            raise BadMessage(502, "got a malformed status line from the provider")
        minor, status, reason = found.groups()
        return ResponseStart(int(status), reason or b"", min(int(minor), 1), fields(rest))
    except BadMessage as bad:
        raise BadMessage(502, bad.why) from bad


def fields(block: bytes) -> Headers:
    """Return the header (or trailer) fields of CRLF-separated lines.

    Raises:
        BadMessage: a line is not `name: value`.
    """
    if not block:
        return ()
    found: list[tuple[bytes, bytes]] = []
    for line in block.split(b"\r\n"):
        match = _FIELD.fullmatch(line)
        if match is None:
            raise BadMessage(400, _what_is_wrong_with(line))
        found.append((match[1], match[2].strip(b" \t")))
    return tuple(found)


def values(headers: Headers, name: bytes) -> list[bytes]:
    """Return all values of the field `name` (lower case), in order."""
    size = len(name)  # comparing lengths first spares most of the lower-casing
    return [value for key, value in headers if len(key) == size and key.lower() == name]


def _take_block(buffer: bytearray) -> bytes | None:
    end = buffer.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES + 4)
    if end < 0:
        if len(buffer) > MAX_HEAD_BYTES:
            raise BadMessage(431, f"got a head of more than {MAX_HEAD_BYTES} bytes")
        if _BARE_LF.search(buffer):
            raise BadMessage(400, "got a line that ends in a bare LF, wanted CRLF")
        return None
    block = bytes(buffer[:end])
    del buffer[: end + 4]
    return block


def _what_is_wrong_with(line: bytes) -> str:
    if line[:1] in (b" ", b"\t"):
        return "got a folded header line (RFC 9112 section 5.2 forbids it)"
    name, colon, value = line.partition(b":")
    if not colon:
        return "got a header line without a colon"
    if name != name.rstrip():
        return "got whitespace between a header's name and its colon"
    if b"\r" in value or b"\n" in value or b"\0" in value:
        return "got a bare CR, LF or NUL in a header"
    return "got a header line with characters that no header may have"
