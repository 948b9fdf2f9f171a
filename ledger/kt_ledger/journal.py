"""The journal's wire format: how the gateway's records look on disk, and how they are read back.

A segment is a sequence of frames. A frame is a 16-byte head (magic `KTJ1`, type, minor version, two reserved bytes,
payload length, CRC-32 of type, minor version and payload; all little-endian) and a JSON payload. The first frame of
a segment is a `header`.
A run of zero bytes where a frame would begin is preallocated space: the end of what was written. Laws:

* a reader never guesses: a frame whose CRC fails is skipped to the next magic and counted as quarantined; an
  incomplete frame at the end is left for later; a major version that we do not know stops the reader there;
* unknown types and unknown payload fields of our major version are ignored (the format grows by addition);
* the writer of a segment is one gateway incarnation, which holds the lock of its folder for life.

Sans-io: takes and gives bytes. Knows no file.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAGIC = b"KTJ1"
"""Four bytes at the start of each frame; the digit is the major version."""

MINOR = 0
MAX_PAYLOAD_BYTES = 1 << 20
"""No record of ours comes near; a longer length is damage, not data."""

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_HEAD = struct.Struct("<4sBBHII")
_CHECKED = struct.Struct("<BB")

HEADER, OPEN, SENT, CLOSE, LOCAL, NOTE = 1, 2, 3, 4, 5, 6
"""Record types.

header  {incarnation, boot_id, pid, start_ticks, started_at_ns, segment, version}
open    {x, instance, run, at_ns, method, path, family, model?, stream?, request_bytes?, max_tokens?, choices?,
         usage_asked_by_us, retry_count?}: the request was admitted; nothing has left yet
sent    {x}: its first bytes have left
close   {x, at_ns, status?, completeness, reason?, counts, raw_usage?, model?, service_tier?, request_id?,
         stream?, request_bytes, response_bytes, first_token_ns?, latency_ns, unsynced?, sent} and, so that a close can
         stand alone when the open is unreadable, also instance, run, opened_at_ns, method, path, family
local   the fields of open and close together: a call that never left (sent is "no")
note    {kind, instance, run?, at_ns, detail, count}: e.g. probes answered locally, counted
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One record and where it stood: `offset` is its frame's first byte, `end` the byte behind it."""

    type: int
    fields: dict[str, Any]
    offset: int
    end: int


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of bytes that is no valid frame; skipped, kept in the file, counted."""

    offset: int
    end: int
    why: str


@dataclass(frozen=True, slots=True)
class NewerMajor:
    """A frame written by a later major version: reading stops at `offset`."""

    offset: int
    found: bytes


def frame(type_: int, fields: dict[str, Any]) -> bytes:
    """Return the bytes of one record, ready to be appended.

    Args:
        type_: one of the record types above.
        fields: the payload; anything JSON can say.
    """
    payload = _encode(fields).encode("utf-8", "surrogatepass")
    assert len(payload) <= MAX_PAYLOAD_BYTES, "a record must be bounded by whoever fills it"
    return _HEAD.pack(MAGIC, type_, MINOR, 0, len(payload), _crc(type_, MINOR, payload)) + payload


def read(data: bytes, *, base: int = 0) -> Iterator[Record | Damage | NewerMajor]:
    """Yield what `data` holds, in order, and stop before an incomplete frame or preallocated space.

    Args:
        data: bytes of a segment from some frame boundary on.
        base: the offset of `data[0]` in the segment; offsets in the results count from the segment's start.

    The caller continues at the last result's `end` once more bytes are there.
    """
    at = 0
    while len(data) - at >= _HEAD.size:
        if not any(data[at : at + _HEAD.size]):
            return
        found = _frame_at(data, at, base)
        if found is None:
            return
        yield found
        if isinstance(found, NewerMajor):
            return
        at = found.end - base


def _frame_at(data: bytes, at: int, base: int) -> Record | Damage | NewerMajor | None:
    magic, type_, minor, _, length, crc = _HEAD.unpack_from(data, at)
    if magic != MAGIC:
        if magic[:3] == MAGIC[:3] and magic[3:].isdigit() and magic[3:] > MAGIC[3:]:
            return NewerMajor(base + at, magic)
        return _damage(data, at, base, "no frame begins here")
    if length > MAX_PAYLOAD_BYTES:
        return _damage(data, at, base, "impossible length")
    end = at + _HEAD.size + length
    if end > len(data):
        return None
    payload = data[at + _HEAD.size : end]
    if _crc(type_, minor, payload) != crc:
        return _damage(data, at, base, "checksum differs")
    fields = json.loads(payload)
    if not isinstance(fields, dict):
        return Damage(base + at, base + end, "payload is not an object")
    return Record(type_, fields, base + at, base + end)


def _damage(data: bytes, at: int, base: int, why: str) -> Damage:
    found = data.find(MAGIC, at + 1)
    return Damage(base + at, base + (found if found >= 0 else len(data)), why)


def _crc(type_: int, minor: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(_CHECKED.pack(type_, minor)))
