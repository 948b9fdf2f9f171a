"""The bytes that a reader took and has not given back, kept apart from the reader, for the case that it fails.

What a reader keeps is always the end of what it was given, so a count and the last pieces are enough.
"""

TRIM_BYTES = 256 << 10


class Unreleased:
    """Remembers the end of a byte stream, as much of it as is still kept somewhere."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._kept_bytes = 0

    def note(self, data: bytes, kept_bytes: int) -> None:
        """Take the next piece of the stream and how many of the last bytes, this piece included, are kept."""
        if kept_bytes == 0:
            if self._pieces:
                self._pieces.clear()
                self._held_bytes = self._kept_bytes = 0
            return
        self._pieces.append(data)
        self._held_bytes += len(data)
        self._kept_bytes = kept_bytes
        if self._held_bytes > TRIM_BYTES:
            self._pieces = [self.last()]
            self._held_bytes = kept_bytes

    def last(self) -> bytes:
        """Return the bytes that are kept."""
        return b"".join(self._pieces)[-self._kept_bytes :] if self._kept_bytes else b""
