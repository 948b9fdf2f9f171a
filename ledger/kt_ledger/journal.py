"""The journal's wire format: how the gateway's records look on disk, and how they are read back.

A segment is a sequence of frames. A frame is a 16-byte head (magic `KTJ1`, type, minor version, two reserved bytes,
payload length, CRC-32 of type, minor version and payload; all little-endian) and a JSON payload. The first frame of
a segment is a `header`.
A run of zero bytes where a frame would begin is preallocated space: the end of what was written. Laws:

* a reader never guesses: bytes that are no frame are quarantined, up to the next frame whose CRC holds. While the
  segment may still be written, only such a later frame proves damage: what is last in it, torn, incomplete or with a
  wrong CRC, may be a write under way and is left for later. A payload never contains a valid head, since JSON text has
  no zero byte and a head always has;
* a major version that we do not know stops the reader there, unless a valid frame of ours follows (then it is damage:
  one incarnation writes one version);
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
_DECODER = json.JSONDecoder()

HEADER, OPEN, SENT, CLOSE, LOCAL, NOTE = 1, 2, 3, 4, 5, 6
"""Record types.

header  {incarnation, boot_id, pid, start_ticks, started_at_ns, segment, version}
open    {x, instance, run, at_ns, method, path, family, model?, stream?, request_bytes?, max_tokens?, choices?,
         usage_asked_by_us, retry_count?}: the request was admitted; nothing has left yet
sent    {x}: its first bytes have left
close   {x, at_ns, status?, completeness, reason?, counts, raw_usage?, reported_cost_nanousd?, model?,
         service_tier?, request_id?, stream?, request_bytes, response_bytes, first_token_ns?, latency_ns,
         retry_at_ns?, unsynced?, sent}
         and, so that a close can stand alone when the open is unreadable, also instance, run, opened_at_ns, method,
         path, family; `retry_at_ns` (wall clock): when a provider that refused for now said that one may come back
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


def read(data: bytes, *, base: int = 0, final: bool = False) -> Iterator[Record | Damage | NewerMajor]:
    """Yield what `data` holds, in order, and stop before what is incomplete, torn, or preallocated space.

    Args:
        data: bytes of a segment from some frame boundary on.
        base: the offset of `data[0]` in the segment; offsets in the results count from the segment's start.
        final: `data` reaches the end of a segment that nobody writes any more: what cannot be read now is damage.

    The caller continues at the last result's `end` once more bytes are there.
    """
    at = 0
    while at < len(data):
        found = _frame_at(data, at, base) or _damage(data, at, base, final=final)
        if found is None:
            return
        yield found
        if isinstance(found, NewerMajor):
            return
        at = found.end - base


def _frame_at(data: bytes, at: int, base: int) -> Record | Damage | None:
    """Return the frame that begins at `at`; None where none does, or not all of it is there."""
    end = _checked_end(data, at)
    if end is None:
        return None
    try:
        text = data[at + _HEAD.size : end].decode("utf-8", "surrogatepass")
        fields, parsed = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return Damage(base + at, base + end, "payload is not JSON")
    if not isinstance(fields, dict) or parsed != len(text):
        return Damage(base + at, base + end, "payload is not an object")
    return Record(data[at + 4], fields, base + at, base + end)


def _checked_end(data: bytes, at: int) -> int | None:
    """Return the end of the complete frame at `at` whose checksum holds, else None."""
    if len(data) - at < _HEAD.size:
        return None
    magic, type_, minor, _, length, crc = _HEAD.unpack_from(data, at)
    end = at + _HEAD.size + length
    if magic != MAGIC or length > MAX_PAYLOAD_BYTES or end > len(data):
        return None
    return end if _crc(type_, minor, data[at + _HEAD.size : end]) == crc else None


def _damage(data: bytes, at: int, base: int, *, final: bool) -> Damage | NewerMajor | None:
    """Return what the bytes at `at`, no readable frame, are: damage, a later version, or None: wait, or the end."""
    following = data.find(MAGIC, at + 1)
    while following >= 0 and _checked_end(data, following) is None:
        following = data.find(MAGIC, following + 1)
    if following >= 0:
        return Damage(base + at, base + following, "no valid frame before the next one")
    magic = data[at : at + len(MAGIC)]
    if magic[:3] == MAGIC[:3] and magic[3:].isdigit() and magic[3:] > MAGIC[3:]:
        return NewerMajor(base + at, magic)
    written = len(data.rstrip(b"\0"))
    # No frame is longer: so much that is no frame cannot be a write under way.
    if written > at and (final or written - at > _HEAD.size + MAX_PAYLOAD_BYTES):
        # The last bytes may be the beginning of a magic whose rest has not come yet.
        end = written if final else written - len(MAGIC) + 1
        return Damage(base + at, base + end, "no valid frame up to the end")
    return None


def _crc(type_: int, minor: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(_CHECKED.pack(type_, minor)))
