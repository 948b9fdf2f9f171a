"""Reading the files behind a log: a chain of segments, from a position on, in bounded pieces.

One file is open at a time and only while it is read. The order of looking is the law: whether a next segment exists is
asked before the current one is read, so that an end of file seen afterwards is final, whatever a writer does meanwhile.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from kt_ledger.clock import Clock
from kt_ledger.values import Folded, Position

PIECE_BYTES = 256 * 1024
"""How much is read at once: some 3000 sentinel lines, one transaction of well below 100 ms."""

LIVE_LIMIT_BYTES = 4 << 20
"""The most that is read at once of a segment that is still written, while its reader waits for more."""


class LogReader(Protocol):
    """What `RunReader` and `JournalReader` have in common."""

    log: str
    position: Position
    stopped: bool  # it will not go on: a later version wrote what follows

    @property
    def wanted(self) -> Position:
        """Return the place of the next byte to give."""

    def feed(self, data: bytes, *, at_ns: int, final: bool = False) -> Folded | None:
        """Return what `data` completes; `final`: the segment ends with it."""

    def next_segment(self) -> None:
        """Go on at the beginning of the next segment."""

    def clamp(self, size: int, *, at_ns: int) -> Folded:
        """Go back to the end of a segment that is shorter than what was read of it, and say so."""

    def missing(self, *, at_ns: int) -> Folded:
        """Go on in the next segment because this one is gone, and say so."""

    def finish(self, *, at_ns: int) -> Folded | None:
        """Return what the end of the whole log means."""


Bound = Callable[[int, int], tuple[int, int]]
"""Given a segment and an offset, up to where may be read now: beyond it, wherever anything is beyond it."""


def read_log(
    reader: LogReader,
    path_of: Callable[[int], Path],
    *,
    clock: Clock,
    closed: bool = False,
    bound: Bound | None = None,
) -> Iterator[Folded]:
    """Yield all that the log's files hold behind the reader's place, one transaction's worth at a time.

    Args:
        reader: it is ahead of the store by what was yielded last; when a commit fails, make a new one.
        path_of: the file of a segment, by number.
        clock: for the time that events are stamped with.
        closed: nobody writes this log any more (ask before calling); then its end is read as an end.
        bound: asked before each look, where not all that is there may be read yet.

    Raises:
        OSError: a segment exists and cannot be read.
    """
    window_bytes = PIECE_BYTES
    while True:
        at = reader.wanted
        most = bound(at.segment, at.offset + window_bytes) if bound is not None else None
        over = path_of(at.segment + 1).exists() and (most is None or most[0] > at.segment)
        data, size = _read(path_of(at.segment), at.offset, window_bytes)
        if size is not None and most is not None and most[0] <= at.segment:
            # Never below the place: what was read of it before was fit to be read then.
            size = max(at.offset, min(size, most[1] if most[0] == at.segment else 0))
            data = data[: size - at.offset]
        now_ns = clock.wall_ns()
        if size is None and over:
            yield reader.missing(at_ns=now_ns)
            continue
        if (size or 0) < at.offset:
            yield reader.clamp(size or 0, at_ns=now_ns)
            continue
        ended = at.offset + len(data) >= (size or 0)
        folded = reader.feed(data, at_ns=now_ns, final=ended and (over or closed))
        if folded is not None:
            yield folded
        if reader.stopped:
            return
        if reader.wanted != at:
            window_bytes = PIECE_BYTES
        elif not ended and (over or closed or window_bytes < LIVE_LIMIT_BYTES):
            window_bytes *= 2  # a frame, or a damaged stretch, that is longer than what was read
        elif ended and over:
            reader.next_segment()
            window_bytes = PIECE_BYTES
        else:
            break
    if closed:
        last = reader.finish(at_ns=clock.wall_ns())
        if last is not None:
            yield last


def _read(path: Path, offset: int, limit_bytes: int) -> tuple[bytes, int | None]:
    """Return (up to `limit_bytes` bytes from `offset` on, the file's size); size None where there is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b"", None
    try:
        # The size is taken after the bytes: at most it says that there is more, never that there is less.
        data = os.pread(descriptor, limit_bytes, offset)
        return data, os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
