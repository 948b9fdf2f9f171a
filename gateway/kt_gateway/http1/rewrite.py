"""Heads as they go on: hop-by-hop fields out (RFC 9110 section 7.6.1), our framing and the provider's key in.

Everything else keeps its bytes and its order. The token of a Run never goes on to a provider.
"""

from collections.abc import Iterable

from kt_gateway.decode.table import dialect_of
from kt_gateway.http1 import head

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authorization",
        b"proxy-authenticate",
        b"te",
        b"transfer-encoding",
        b"upgrade",
        b"http2-settings",
    }
)
CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
"""Headers in which clients carry a key."""
_AUTHORIZATION = b"authorization"
_KEY_HEADER_OF_AZURE = b"api-key"
_NO_OPTIONS: frozenset[bytes] = frozenset()
_OURS_TO_SAY = frozenset({b"host", b"content-length", b"expect"})


def connection_options(headers: head.Headers) -> frozenset[bytes]:
    """Return the lower-case options of all Connection headers."""
    named = head.values(headers, b"connection")
    if not named:
        return _NO_OPTIONS
    found: set[bytes] = set()
    for value in named:
        found.update(option.strip().lower() for option in value.split(b","))
    return frozenset(found)


def key_header(path: bytes, key: str) -> tuple[bytes, bytes]:
    """Return the header that carries `key` in the API family of `path`."""
    name = _KEY_HEADER_OF_AZURE if b"/openai/deployments/" in path else None
    if name is None:
        dialect = dialect_of("POST", path.decode("latin-1"))
        name = dialect.key_header.encode() if dialect is not None else _AUTHORIZATION
    return (name, b"Bearer " + key.encode()) if name == _AUTHORIZATION else (name, key.encode())


def request(
    start: head.RequestStart,
    *,
    target: bytes,
    host: bytes,
    key: tuple[bytes, bytes] | None,
    token: bytes | None,
    identity: bool,
    framing: bytes,
) -> bytes:
    """Return the head to send to the provider.

    Args:
        start: the head as the agent sent it.
        target: the path and query at the provider.
        host: the provider's host, with its port where that is not the scheme's own.
        key: the header to put in the place of whatever key the agent sent; None lets the agent's own pass.
        token: the Run's token; a header that carries it is dropped.
        identity: whether to ask for an uncoded answer.
        framing: the header line that says how the body is framed; empty for no body.
    """
    dropped = connection_options(start.headers) | _HOP_BY_HOP | _OURS_TO_SAY
    lines = [b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (start.method, target, host)]
    for name, value in start.headers:
        lower = name.lower()
        if lower in dropped:
            continue
        if lower in CREDENTIALS and key is not None:
            continue
        if token is not None and token in value:
            continue
        if lower == b"accept-encoding" and identity:
            continue
        lines.append(b"%b: %b\r\n" % (name, value))
    if identity:
        lines.append(b"accept-encoding: identity\r\n")
    if key is not None:
        lines.append(b"%b: %b\r\n" % key)
    lines.append(framing + b"\r\n")
    return b"".join(lines)


def response(start: head.ResponseStart, *, framing: bytes, close: bool) -> bytes:
    """Return the head to send to the agent; `framing` as in `request`."""
    dropped = connection_options(start.headers) | _HOP_BY_HOP
    if framing:
        dropped |= {b"content-length"}
    lines = [b"HTTP/1.1 %d %b\r\n" % (start.status, start.reason)]
    lines += _lines(start.headers, dropped)
    lines.append(framing + (b"connection: close\r\n\r\n" if close else b"\r\n"))
    return b"".join(lines)


def interim(start: head.ResponseStart) -> bytes:
    """Return a 1xx head to send to the agent."""
    lines = _lines(start.headers, connection_options(start.headers) | _HOP_BY_HOP)
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (start.status, start.reason, b"".join(lines))


def _lines(headers: head.Headers, dropped: frozenset[bytes]) -> Iterable[bytes]:
    return [b"%b: %b\r\n" % field for field in headers if field[0].lower() not in dropped]
