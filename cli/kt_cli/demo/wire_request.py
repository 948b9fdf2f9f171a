"""Read one HTTP/1.1 request from a stream, as far as a replaying provider needs it.

Sized and chunked bodies, `Expect: 100-continue`, keep-alive. Laws: what cannot be read is `RequestInvalid`, never a
guess; a body beyond `KEPT_BODY_BYTES` is counted whole and kept in part. Knows no case and no log.
"""

import asyncio
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

MAX_HEAD_BYTES = 64 << 10
KEPT_BODY_BYTES = 16 << 20
_PORTION_BYTES = 64 << 10


class RequestInvalid(Exception):
    """The bytes are not an HTTP/1.1 request that this provider reads; the message says what was got and wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """One request, fully received. `body` is as it came (still encoded); `body_bytes` counts all of it."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)  # names in lower case, the last one wins
    body: bytes = b""
    body_bytes: int = 0

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection may serve another request."""
        return "close" not in self.headers.get("connection", "").lower()

    def document(self) -> dict[str, Any]:
        """Return the body as a JSON object; empty where it is none."""
        try:
            document = json.loads(_plain(self.body, self.headers.get("content-encoding", "")))
        except (ValueError, zlib.error, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> WireRequest | None:
    """Return the next request, or None where the client has left between two.

    Raises:
        RequestInvalid: the bytes are not a request, or end in the middle of one.
        ConnectionError: the connection broke.
    """
    head = await _read_head(reader)
    if head is None:
        return None
    method, target, headers = _parse_head(head)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    try:
        body, count = await _read_body(reader, headers)
    except asyncio.IncompleteReadError as error:
        raise RequestInvalid(f"got a body that ended after {len(error.partial)} bytes of a part") from error
    return WireRequest(method=method, target=target, headers=headers, body=body, body_bytes=count)


async def _read_head(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise RequestInvalid(f"got {error.partial[:40]!r} and the end, wanted a whole head") from error
    except asyncio.LimitOverrunError as error:
        raise RequestInvalid(f"got a head of more than {MAX_HEAD_BYTES} bytes") from error


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise RequestInvalid(f"got {first[:60]!r}, wanted a request line of HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise RequestInvalid(f"got {line[:60]!r}, wanted a header field")
        headers[name.strip().lower()] = value.strip()
    return parts[0], parts[1], headers


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> tuple[bytes, int]:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await _read_chunks(reader)
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        raise RequestInvalid(f"got content-length {length!r}, wanted a decimal number")
    kept = bytearray()
    await _take(reader, int(length), kept)
    return bytes(kept), int(length)


async def _read_chunks(reader: asyncio.StreamReader) -> tuple[bytes, int]:
    kept, count = bytearray(), 0
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError as error:
            raise RequestInvalid(f"got chunk size {line[:20]!r}, wanted a hexadecimal number") from error
        if size == 0:
            break
        count += size
        await _take(reader, size, kept)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers say nothing that a provider's log needs
    return bytes(kept), count


async def _take(reader: asyncio.StreamReader, count: int, kept: bytearray) -> None:
    while count:
        portion = await reader.readexactly(min(count, _PORTION_BYTES))
        count -= len(portion)
        if len(kept) < KEPT_BODY_BYTES:
            kept += portion


def _plain(body: bytes, encoding: str) -> bytes:
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompress(body, 47)
    return body
