"""The agent's output on disk: append-only segments, each with a time index.

Laws: bytes are written as they came and in order; a segment is complete before the next one exists; a write that the
disk refuses is kept and tried again, and the agent is held back meanwhile by its full pipe.
"""

import os
import struct
from pathlib import Path

from kt_ledger.clock import Clock
from kt_ledger.durable import durable
from kt_ledger.layout import RunLayout

_ENTRY = struct.Struct("<QQ")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class SegmentWriter:
    """Writes one stream ("out" or "err") of one Run."""

    def __init__(self, files: RunLayout, stream: str, *, limit_bytes: int, clock: Clock) -> None:
        self._files = files
        self._stream = stream
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._pending = b""
        self.number = 1
        self.offset = 0
        self._log, self._index = self._open(1)

    @property
    def blocked(self) -> bool:
        """Whether bytes wait for the disk: read nothing more until `retry` took them."""
        return bool(self._pending)

    @property
    def end(self) -> dict[str, int]:
        """Where the log ends: {segment, offset}."""
        return {"segment": self.number, "offset": self.offset}

    def append(self, data: bytes) -> OSError | None:
        """Write `data` as far as the disk takes it; return the error that held up the rest."""
        assert not self._pending, "retry first"
        self._pending = data
        return self.retry()

    def retry(self) -> OSError | None:
        """Write what waits; return the error that holds it up."""
        try:
            if self.offset >= self._limit_bytes:
                self._rotate()
            if self._pending:
                self._note_time()
            while self._pending:
                written = os.write(self._log, self._pending)
                self._pending = self._pending[written:]
                self.offset += written
        except OSError as error:
            return error
        return None

    def close(self) -> None:
        """Make both files durable and close them."""
        for descriptor in (self._log, self._index):
            try:
                durable(descriptor)
            except OSError:
                pass  # the bytes are in the file; a disk that cannot sync has been reported by its writes
            os.close(descriptor)

    def _open(self, number: int) -> tuple[int, int]:
        log = os.open(self._files.segment(self._stream, number), _FLAGS, 0o600)
        try:
            index = os.open(self._files.index(self._stream, number), _FLAGS, 0o600)
        except OSError:
            os.close(log)
            raise
        return log, index

    def _rotate(self) -> None:
        log, index = self._open(self.number + 1)
        self.close()
        self._log, self._index = log, index
        self.number += 1
        self.offset = 0

    def _note_time(self) -> None:
        os.write(self._index, _ENTRY.pack(self.offset, self._clock.wall_ns()))


def prepare(folder: Path) -> None:
    """Make a Run's folder, for us alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
