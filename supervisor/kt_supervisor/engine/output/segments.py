"""One stream of one Run on disk: its segments, what was deleted of it, and the time of each byte.

Nothing is kept open between two reads, and nothing is read whole: an index holds an entry for each write of the agent.
"""

import bisect
import errno
import os
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kt_ledger.layout import RunLayout
from kt_supervisor.engine.output.positions import Place
from kt_supervisor.engine.run.run_records import read_json

DELETED = "deleted.json"
ENTRY = struct.Struct("<QQ")
WINDOW_ENTRIES = 4096


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted of a stream: all segments up to `through`.

    `bytes` is their length together; `ends` is the same for the latest of them by number, so that a reader can be told
    exactly what it missed; `whole`: the last of them ended with a line.
    """

    through: int = 0
    bytes: int = 0
    whole: bool = True
    ends: Mapping[int, int] = field(default_factory=dict)

    def missed_by(self, place: Place) -> int:
        """Return how many bytes behind `place` are gone; at most, where that is too long ago to know."""
        if place.segment > self.through:
            return 0
        return max(0, self.bytes - self.ends.get(place.segment - 1, 0) - place.offset)

    @classmethod
    def read(cls, files: RunLayout, stream: str) -> "Deleted":
        """Return what a Run's folder says."""
        facts = (read_json(files.root / DELETED) or {}).get(stream)
        if not isinstance(facts, dict):
            return cls()
        ends = {int(number): int(end) for number, end in facts.get("ends", {}).items()}
        return cls(int(facts["through"]), int(facts["bytes"]), bool(facts["whole"]), ends)

    def to_json(self) -> dict[str, Any]:
        """Return it as it is kept."""
        ends = {str(number): end for number, end in self.ends.items()}
        return {"through": self.through, "bytes": self.bytes, "whole": self.whole, "ends": ends}


EARLIER = "earlier"

Bound = Callable[[Place | None], Place]


def earlier_bytes(files: RunLayout) -> int | None:
    """Return how much output of earlier Runs was deleted with their folders; None where nobody counted."""
    facts = (read_json(files.root / DELETED) or {}).get(EARLIER)
    return int(facts["bytes"]) if isinstance(facts, dict) else None


class Segments:
    """The segments of one stream ("out" or "err") of one Run.

    With `bound`, which is asked for a place, or for the end (None), and says up to where may be read now, nothing that
    lies behind that is there.
    """

    def __init__(self, files: RunLayout, stream: str, *, bound: Bound | None = None) -> None:
        self.files = files
        self.stream = stream
        self._bound = bound
        self._name = re.compile(rf"{stream}-(\d+)\.log")

    def numbers(self) -> list[int]:
        """Return the numbers of the segments that are there, and are not about to be deleted, in order."""
        through = self.deleted().through
        last = None if self._bound is None else self._bound(None).segment
        return [number for number in self._listed() if number > through and (last is None or number <= last)]

    def doomed(self) -> list[int]:
        """Return those that are there although they were written down as deleted."""
        through = self.deleted().through
        return [number for number in self._listed() if number <= through]

    def _listed(self) -> list[int]:
        try:
            found = [self._name.fullmatch(path.name) for path in self.files.root.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(name[1]) for name in found if name)

    def deleted(self) -> Deleted:
        """Return what is gone."""
        return Deleted.read(self.files, self.stream)

    def exists(self, number: int) -> bool:
        """Tell whether a segment is there."""
        if self._bound is not None and self._bound(Place(number, 0)).segment < number:
            return False
        return self.files.segment(self.stream, number).exists()

    def size(self, number: int) -> int:
        """Return how long a segment is now; 0 where there is none."""
        end = None if self._bound is None else self._bound(None)
        try:
            size = self.files.segment(self.stream, number).stat().st_size
        except FileNotFoundError:
            return 0
        return size if end is None or number < end.segment else _within(end, Place(number, 0), size)

    def read(self, place: Place, limit_bytes: int) -> bytes | None:
        """Return some bytes from `place` on; none at the end; None where the segment is not there."""
        if self._bound is not None:
            end = self._bound(Place(place.segment, place.offset + limit_bytes))
            if place.segment >= end.segment:
                limit_bytes = _within(end, place, limit_bytes)
        return _pread(self.files.segment(self.stream, place.segment), place.offset, limit_bytes)

    def times(self, number: int) -> "Times":
        """Return the index of a segment."""
        return Times(self.files.index(self.stream, number))


class Times:
    """When the bytes of one segment were written; made for being asked in order, right in any."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: list[int] = []
        self._walls: list[int] = []
        self._first = 0
        self._count = 0

    def refresh(self) -> None:
        """Take into account what was written since."""
        try:
            self._count = self._path.stat().st_size // ENTRY.size
        except FileNotFoundError:
            self._count = 0

    def at(self, offset: int) -> int:
        """Return the wall-clock ns of the write that the byte at `offset` came with; 0 where nobody knows."""
        if not self._covers(offset):
            self._load(max(self.find(offset=offset) - 1, 0))
        found = bisect.bisect_right(self._offsets, offset)
        return self._walls[max(found - 1, 0)] if self._walls else 0

    def find(self, *, offset: int | None = None, wall_ns: int | None = None) -> int:
        """Return the number of the first entry behind `offset`, or not before `wall_ns`; reads some 20 entries."""
        self.refresh()
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            behind = entry[0] > offset if offset is not None else entry[1] >= (wall_ns or 0)
            low, high = (low, middle) if behind else (middle + 1, high)
        return low

    def entry(self, number: int) -> tuple[int, int]:
        """Return one entry: (offset, wall-clock ns); beyond the end, one behind everything."""
        data = _pread(self._path, number * ENTRY.size, ENTRY.size) or b""
        offset, wall_ns = ENTRY.unpack(data) if len(data) == ENTRY.size else (1 << 62, 1 << 62)
        return offset, wall_ns

    @property
    def count(self) -> int:
        """How many entries there were when this was last looked at."""
        return self._count

    def _covers(self, offset: int) -> bool:
        if not self._offsets or offset < self._offsets[0]:
            return not self._offsets and not self._count
        return offset < self._offsets[-1] or self._first + len(self._offsets) >= self._count

    def _load(self, number: int) -> None:
        data = _pread(self._path, number * ENTRY.size, WINDOW_ENTRIES * ENTRY.size) or b""
        pairs = list(ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY.size]))
        self._first = number
        self._offsets = [offset for offset, _ in pairs]
        self._walls = [wall_ns for _, wall_ns in pairs]


def _within(end: Place, place: Place, count: int) -> int:
    """Return how many of `count` bytes from `place` on lie before `end`, which is in this segment or an earlier one."""
    return max(0, min(count, end.offset - place.offset)) if place.segment == end.segment else 0


def _pread(path: Path, offset: int, limit_bytes: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None  # a link that somebody put there: what it leads to is no output
        raise
    try:
        return os.pread(descriptor, limit_bytes, offset)
    finally:
        os.close(descriptor)
