"""One stream of the agent on disk: segments that only grow, a time index each, and no byte ever in our hands.

Bytes go from pipe to file by splice(2): a keeper that is killed in the middle has either moved them or left them in the
pipe, where whoever holds its read end finds them. The same goes for a full disk: the pipe fills and the agent waits.
Where a file system or a kernel has no splice, bytes are read and written; then a kill can take what was in hand.
"""

import errno
import fcntl
import os
import struct
import termios

from kt_ledger import durable
from kt_supervisor.keeper import loop, places, system

CHUNK_BYTES = 1024 * 1024
MAX_RETIRED = 4
_ENTRY = struct.Struct("<QQ")


class Segments:
    """The files of one stream: appends, rotates, and knows the position after the last byte."""

    def __init__(self, stream: str, *, limit_bytes: int, spliced: bool = hasattr(os, "splice")) -> None:
        self.number = 1
        self.offset = 0
        self.spliced = spliced
        self._stream = stream
        self._limit_bytes = limit_bytes
        self._log: int | None = None
        self._index: int | None = None
        self._index_bytes = 0
        self._hand = memoryview(b"")
        self._hand_wall_ns = 0
        self._retired: list[int] = []

    def resume(self) -> None:
        """Go on where another keeper ended: at the end of the last segment that exists."""
        # Listed, not counted up from 1: the oldest may have been deleted.
        self.number = max((self.number, *places.segment_numbers(self._stream, os.listdir("."))))

    def open(self) -> None:
        """Create the present segment if it is not open yet.

        Raises:
            OSError: no space, no descriptors, no permission; call it again later.
        """
        flags = os.O_WRONLY | os.O_CREAT
        if self._index is None:
            self._index = os.open(places.index(self._stream, self.number), flags | os.O_APPEND, 0o600)
            self._index_bytes = os.fstat(self._index).st_size // _ENTRY.size * _ENTRY.size
            os.ftruncate(self._index, self._index_bytes)
        if self._log is None:
            # Not O_APPEND, which splice(2) refuses; the keeper is the only writer and knows the end.
            self._log = os.open(places.segment(self._stream, self.number), flags, 0o600)
            self.offset = os.fstat(self._log).st_size

    def is_full(self) -> bool:
        """Tell whether the next byte begins another segment."""
        return self.offset >= self._limit_bytes and not self._hand

    def take(self, pipe: int) -> int:
        """Move what is in `pipe` now, or a part of it, behind the last byte; 0 at the end of the stream.

        Raises:
            BlockingIOError: there is nothing in the pipe now.
            OSError: the disk took nothing; the same call may succeed later.
        """
        if not self._hand and self.spliced:
            moved = self._splice(pipe)
            if moved is not None:
                return moved
        if not self._hand:
            data = os.read(pipe, min(CHUNK_BYTES // 16, self._room_bytes()))
            if not data:
                return 0
            self._hand, self._hand_wall_ns = memoryview(data), loop.wall_ns()
        moved = len(self._hand)
        self.flush()
        return moved

    def flush(self) -> None:
        """Write what is in hand, if anything. Raises OSError."""
        while self._hand:
            self._hand = self._hand[self.append(self._hand, self._hand_wall_ns) :]

    def in_hand_bytes(self) -> int:
        """Return how much was taken from the pipe and is not in the file."""
        return len(self._hand)

    def append(self, data: memoryview, wall_ns: int) -> int:
        """Write a beginning of `data` and return its length.

        Raises:
            OSError: nothing was written; the same call may succeed later.
        """
        log = self._ready()
        try:
            written = os.pwrite(log, data, self.offset)
        except OSError as error:
            self._refused(error)
            raise
        self._note_time(wall_ns)
        self.offset += written
        return written

    def sync(self) -> None:
        """Make all that was appended survive a power cut.

        Raises:
            OSError: it may not.
        """
        self.settle()
        if self._log is not None:
            durable.durable(self._log)

    def settle(self, keep: int = 0) -> bool:
        """Make the oldest of the full segments durable until `keep` are left; True if there were any to do.

        Raises:
            OSError: one of them may not survive a power cut.
        """
        done = False
        while len(self._retired) > keep:
            log = self._retired.pop(0)
            done = True
            try:
                durable.durable(log)
            finally:
                os.close(log)
        return done

    def retired(self) -> bool:
        """Return whether full segments wait to be made durable."""
        return bool(self._retired)

    def _room_bytes(self) -> int:
        return self._limit_bytes if self.offset >= self._limit_bytes else self._limit_bytes - self.offset

    def _ready(self) -> int:
        if self.offset >= self._limit_bytes:
            self._rotate()
        self.open()
        assert self._log is not None
        return self._log

    def _splice(self, pipe: int) -> int | None:
        if self.offset >= self._limit_bytes and not _waiting_bytes(pipe):
            return None  # reading tells an end from a pause, and no segment begins before it has a byte
        log = self._ready()
        wall_ns = loop.wall_ns()
        try:
            count = min(CHUNK_BYTES, self._room_bytes())
            moved = os.splice(pipe, log, count, offset_dst=self.offset, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOSYS):
                self.spliced = False  # this file system cannot (splice(2))
                return None
            self._refused(error)
            raise
        if moved:
            self._note_time(wall_ns)
            self.offset += moved
        return moved

    def _refused(self, error: OSError) -> None:
        if error.errno == errno.EFBIG and self.offset:
            self._rotate()  # a file size limit below ours: go on in the next one

    def _rotate(self) -> None:
        if self._log is not None:
            system.start_writing(self._log)
            self._retired.append(self._log)
        if self._index is not None:
            os.close(self._index)
        self._log = self._index = None
        self.number += 1
        self.offset = 0
        try:
            self.settle(MAX_RETIRED)
        except OSError:
            pass  # its bytes are written; only a power cut could still take them

    def _note_time(self, wall_ns: int) -> None:
        assert self._index is not None
        try:
            if os.write(self._index, _ENTRY.pack(self.offset, wall_ns)) == _ENTRY.size:
                self._index_bytes += _ENTRY.size
                return
        except OSError:
            pass
        try:
            os.ftruncate(self._index, self._index_bytes)  # times get coarser; no byte of output is lost
        except OSError:
            pass


def _waiting_bytes(pipe: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0])
