"""The agent's pipes, copied into append-only segments without losing a byte.

A segment is complete before the next one exists, so a reader at the end of segment N that finds N + 1 reads N to its
end once more and goes on. Segments break anywhere in a line: read them as one stream. When the disk refuses, the bytes
in hand stay in hand, the pipe fills, and the agent waits: that is the back-pressure.
"""

import errno
import os
import struct
from collections.abc import Callable

from kt_ledger import durable
from kt_supervisor.keeper import loop, places

CHUNK_BYTES = 64 * 1024
RETRY_S = 0.25
_ENTRY = struct.Struct("<QQ")


class Segments:
    """The files of one stream: appends, rotates, and knows the position after the last byte."""

    def __init__(self, stream: str, *, limit_bytes: int) -> None:
        self.number = 1
        self.offset = 0
        self._stream = stream
        self._limit_bytes = limit_bytes
        self._log: int | None = None
        self._index: int | None = None
        self._index_bytes = 0

    def open(self) -> None:
        """Create the present segment if it is not open yet.

        Raises:
            OSError: no space, no descriptors, no permission; call it again later.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        if self._index is None:
            self._index = os.open(places.index(self._stream, self.number), flags, 0o600)
            self._index_bytes = os.fstat(self._index).st_size // _ENTRY.size * _ENTRY.size
            os.ftruncate(self._index, self._index_bytes)
        if self._log is None:
            self._log = os.open(places.segment(self._stream, self.number), flags, 0o600)
            self.offset = os.fstat(self._log).st_size

    def room_bytes(self) -> int:
        """Return how much fits before the next segment begins; at least 1."""
        return self._limit_bytes if self.offset >= self._limit_bytes else self._limit_bytes - self.offset

    def append(self, data: memoryview, wall_ns: int) -> int:
        """Write a beginning of `data` and return its length.

        Raises:
            OSError: nothing was written; the same call may succeed later.
        """
        if self.offset >= self._limit_bytes:
            self._rotate()
        self.open()
        assert self._log is not None
        try:
            written = os.write(self._log, data)
        except OSError as error:
            if error.errno == errno.EFBIG and self.offset:
                self._rotate()  # a file size limit below ours: go on in the next one
            raise
        self._note_time(wall_ns)
        self.offset += written
        return written

    def sync(self) -> None:
        """Make all that was appended survive a power cut.

        Raises:
            OSError: it may not.
        """
        if self._log is not None:
            durable.durable(self._log)

    def _rotate(self) -> None:
        if self._log is not None:
            try:
                self.sync()
            except OSError:
                pass  # its bytes are written; only a power cut could still take them
            os.close(self._log)
        if self._index is not None:
            os.close(self._index)
        self._log = self._index = None
        self.number += 1
        self.offset = 0

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


class Copier:
    """Moves one pipe into its segments as fast as both allow."""

    def __init__(
        self,
        events: loop.Loop,
        segments: Segments,
        *,
        copied: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        self._loop = events
        self._segments = segments
        self._copied = copied
        self._note = note
        self._pipe: int | None = None
        self._pending = memoryview(b"")
        self._pending_wall_ns = 0
        self._retry: loop.Timer | None = None

    def start(self, pipe: int) -> None:
        """Take over `pipe`, the read end, and copy until it ends."""
        try:
            self._segments.open()  # so that a reader finds the first segment
        except OSError:
            pass  # the first byte tries again
        os.set_blocking(pipe, False)
        self._pipe = pipe
        self._loop.watch(pipe, self._readable)

    def position(self) -> dict[str, int]:
        """Return where the log ends."""
        return {"segment": self._segments.number, "offset": self._segments.offset}

    def pipe(self) -> int | None:
        """Return the read end while it is open, to be duplicated."""
        return self._pipe

    def drain(self, limit_bytes: int) -> bool:
        """Copy all that is in the pipe now, at most about `limit_bytes`; True if nothing is left in hand."""
        copied_bytes = 0
        while copied_bytes <= limit_bytes and not self._pending:
            got = self._step()
            if not got:
                break
            copied_bytes += got
        return self._flush()

    def close(self) -> None:
        """Let go of the pipe and make the log durable, as far as the disk allows."""
        self._let_go()
        try:
            self._segments.sync()
        except OSError as error:
            self._note(f"the log may not survive a power cut: {error}")

    def _readable(self, _events: int) -> None:
        self._step()

    def _step(self) -> int:
        if self._pipe is None or self._pending:
            return 0
        try:
            data = os.read(self._pipe, min(CHUNK_BYTES, self._segments.room_bytes()))
        except BlockingIOError:
            return 0
        if not data:
            self._let_go()
            return 0
        self._pending, self._pending_wall_ns = memoryview(data), loop.wall_ns()
        self._flush()
        self._copied()
        return len(data)

    def _flush(self) -> bool:
        try:
            while self._pending:
                written = self._segments.append(self._pending, self._pending_wall_ns)
                self._pending = self._pending[written:]
        except OSError as error:
            self._wait(error)
            return False
        return True

    def _wait(self, error: OSError) -> None:
        if self._retry is not None:
            return
        self._note(f"output waits for the disk, {len(self._pending)} bytes in hand: {error}")
        if self._pipe is not None:
            self._loop.unwatch(self._pipe)
        self._retry = self._loop.after(RETRY_S, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        if not self._flush():
            return
        self._note("output flows again")
        if self._pipe is not None:
            self._loop.watch(self._pipe, self._readable)
        self._copied()

    def _let_go(self) -> None:
        if self._pipe is not None:
            self._loop.unwatch(self._pipe)
            os.close(self._pipe)
            self._pipe = None
