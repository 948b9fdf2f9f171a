"""One file of the journal: created exclusively, appended to, cut back to its last whole record when a write fails.

Knows frames only as bytes. Never retries anything: whoever owns the segment decides.
"""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from kt_ledger import layout


class Segment:
    """An open segment; `size` counts the bytes of whole records in it."""

    def __init__(self, folder: Path, number: int, *, hidden_as: str | None = None) -> None:
        """Create segment `number` in `folder`; `hidden_as` is a name that readers do not look for.

        Raises:
            OSError: it exists, or cannot be made.
        """
        self.number = number
        self.in_sync = False  # a thread that was given up is still in a sync of it, and closes it one day
        self.path = layout.journal_segment(folder, number)
        if hidden_as is not None:
            self.path = self.path.with_name(hidden_as)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self.descriptor = os.open(self.path, flags, 0o600)
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append `data` whole.

        Raises:
            OSError: the kernel took less; the file was cut back to the last whole record where that was possible.
        """
        try:
            written = os.write(self.descriptor, data)
            while written < len(data):
                written += os.write(self.descriptor, data[written:])
        except OSError:
            self._cut_back()
            raise
        self.size += len(data)

    def reveal(self) -> None:
        """Give a hidden segment its proper name.

        Raises:
            OSError: the name is taken, or the folder cannot be changed.
        """
        proper = layout.journal_segment(self.path.parent, self.number)
        try:
            os.link(self.path, proper)  # unlike rename(2) it never replaces another
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP):
                raise
            self.path = self.path.rename(proper)  # a file system without hard links
            return
        hidden, self.path = self.path, proper
        hidden.unlink(missing_ok=True)

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self.descriptor, self.size)
        except OSError:
            pass  # the reader quarantines a torn tail; there is nothing better to do on this file

    def close(self) -> None:
        """Give the descriptor back, once; errors of a file that is given up do not matter any more."""
        descriptor, self.descriptor = self.descriptor, -1
        try:
            os.close(descriptor)
        except OSError:
            pass


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(
    segments: Sequence[Segment], folder: Path | None, *, sync: Callable[[int], None]
) -> OSError | None:
    """Make segments durable, in their order, and the names in `folder`; return what went wrong."""
    try:
        for segment in segments:
            sync(segment.descriptor)
        if folder is not None:
            sync_folder(folder)
    except OSError as error:
        return error
    return None


def close_idle(segments: Sequence[Segment]) -> None:
    """Close the segments that no hung sync has in hand; the others are closed by it."""
    for segment in segments:
        if not segment.in_sync:
            segment.close()
