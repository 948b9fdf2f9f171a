"""Records that are not known to be durable: kept in memory until they are, so that they can be written again.

Bounded: beyond 32 MiB all but close records are dropped, and counted. Not thread-safe: its owner has a lock.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

from kt_ledger import clock, journal

KEPT_LIMIT_BYTES = 32 << 20


class KeptRecords:
    """What was handed in since the last sync that succeeded."""

    def __init__(self) -> None:
        self.sequence = 0  # of the latest record
        self.dropped = 0
        self._records: deque[tuple[int, int, dict[str, Any], int]] = deque()
        self._size = 0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._records)

    def add(self, type_: int, fields: dict[str, Any], size: int, *, written: bool) -> None:
        """Keep a record; one that could not be written is dropped where there is no room."""
        if not written and type_ != journal.CLOSE and self._size + size > KEPT_LIMIT_BYTES:
            self.dropped += 1
            return
        self.sequence += 1
        self._records.append((self.sequence, type_, fields, size))
        self._size += size

    def forget(self, sequence: int) -> None:
        """Let go of the records up to `sequence`: they are durable."""
        while self._records and self._records[0][0] <= sequence:
            self._size -= self._records.popleft()[3]

    def frames_again(self) -> Iterator[bytes]:
        """Yield the frames to write again; the answers of close records have been released meanwhile."""
        for _, type_, fields, _ in self._records:
            yield journal.frame(type_, {**fields, "unsynced": True} if type_ == journal.CLOSE else fields)

    def take_dropped(self) -> bytes | None:
        """Return a note about what was dropped since the last time."""
        count, self.dropped = self.dropped, 0
        if not count:
            return None
        detail = "records of refused calls were dropped while the journal could not be written"
        note = {
            "kind": "gap",
            "instance": "",
            "run": None,
            "at_ns": clock.SystemClock().wall_ns(),
            "detail": detail,
        }
        return journal.frame(journal.NOTE, {**note, "count": count})
