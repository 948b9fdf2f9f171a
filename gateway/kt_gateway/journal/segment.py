"""One file of the journal: created exclusively, appended to, cut back to its last whole record when a write fails.

Knows frames only as bytes. Never retries anything: whoever owns the segment decides.
"""

import os
from pathlib import Path

from kt_ledger import layout


class Segment:
    """An open segment; `size` counts the bytes of whole records in it."""

    def __init__(self, folder: Path, number: int, *, hidden: bool = False) -> None:
        """Create segment `number` in `folder`; a hidden one has a name that readers do not look for.

        Raises:
            OSError: it exists, or cannot be made.
        """
        self.number = number
        self.path = layout.journal_segment(folder, number)
        if hidden:
            self.path = self.path.with_name(f".{self.path.name}")
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
            OSError: the folder cannot be changed.
        """
        self.path = self.path.rename(self.path.with_name(self.path.name.removeprefix(".")))

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self.descriptor, self.size)
        except OSError:
            pass  # the reader quarantines a torn tail; there is nothing better to do on this file

    def close(self) -> None:
        """Give the descriptor back; errors of a file that is given up do not matter any more."""
        try:
            os.close(self.descriptor)
        except OSError:
            pass


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
