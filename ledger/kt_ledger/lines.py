"""Lines out of a byte stream that arrives in arbitrary pieces, in bounded memory.

A line ends at LF; a CR before it is not part of it. A line longer than the limit is returned at once, cut to the limit,
and the rest of it is skipped. Sans-io: takes pieces, gives lines, knows how far its input may be forgotten.
"""

from typing import NamedTuple

LIMIT_BYTES = 1 << 20
"""The longest line that is kept whole; the longest report that can be well-formed is far below 4 KiB."""


class Line(NamedTuple):
    """One line without its end; `truncated`: it was longer, and this is its beginning."""

    data: bytes
    truncated: bool = False


class LineSplitter:
    """Feed it pieces in order.

    `fed` counts the bytes given so far; those from `safe` on must be given again to a new splitter that continues this
    one's work. `skipping` says whether `safe` lies inside a line too long to keep.
    """

    def __init__(
        self, *, limit_bytes: int = LIMIT_BYTES, marker: bytes = b"", skipping: bool = False, fed: int = 0
    ) -> None:
        """Begin at a line's first byte, or where `skipping`, inside a line whose rest is of no interest.

        Args:
            limit_bytes: the longest line kept whole, without its LF.
            marker: only lines that contain this are returned; most others are then not even cut out.
            skipping: begin by skipping to the next LF.
            fed: what to count from.
        """
        self._limit_bytes = limit_bytes
        self._marker = marker
        self._pending = bytearray()
        self.skipping = skipping
        self.fed = fed

    @property
    def safe(self) -> int:
        """Return the offset of the first byte still needed: where the unfinished line begins."""
        return self.fed - len(self._pending)

    def feed(self, piece: bytes) -> list[Line]:
        """Return the lines that `piece` completes or makes too long."""
        self.fed += len(piece)
        if self.skipping:
            _, found, piece = piece.partition(b"\n")
            if not found:
                return []
            self.skipping = False
        last = piece.rfind(b"\n")
        if last < 0:
            self._pending += piece
            return self._overflow()
        if self._pending:
            self._pending += piece[:last]
            body = bytes(self._pending)
            self._pending.clear()
        else:
            body = piece[:last]
        lines = self._cut(body)
        self._pending += piece[last + 1 :]
        return lines + self._overflow()

    def finish(self) -> Line | None:
        """Return the line that the stream ended in without an LF, if it is one to be returned."""
        body = bytes(self._pending)
        self._pending.clear()
        self.skipping = False
        return self._line(body) if body and self._marker in body else None

    def _cut(self, body: bytes) -> list[Line]:
        if self._marker not in body:
            return []
        return [self._line(line) for line in body.split(b"\n") if self._marker in line[: self._limit_bytes]]

    def _overflow(self) -> list[Line]:
        if len(self._pending) <= self._limit_bytes:
            return []
        kept = bytes(self._pending[: self._limit_bytes])
        self._pending.clear()
        self.skipping = True
        return [Line(kept, truncated=True)] if self._marker in kept else []

    def _line(self, line: bytes) -> Line:
        if len(line) > self._limit_bytes:
            return Line(line[: self._limit_bytes], truncated=True)
        return Line(line[:-1] if line.endswith(b"\r") else line)
