"""What a reader of a body says about bytes that it was given."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Outcome:
    """Bytes to give on now, and bytes to hold from the terminal event on (`terminal` says that it came)."""

    now: bytes
    held: bytes = b""
    terminal: bool = False


class Reader(Protocol):
    """Reads a body as it passes: each byte is given back once, in order; `kept_bytes` of the last are still kept."""

    @property
    def kept_bytes(self) -> int:
        """How many of the last bytes taken were not given back yet."""
        ...

    @property
    def streams(self) -> bool:
        """Whether the body is a stream of documents, by its framing and what came so far."""
        ...

    @property
    def readable(self) -> bool:
        """Whether the body could be read for what it pretends to be; known at its end."""
        ...

    @property
    def overlong(self) -> bool:
        """Whether something that we wanted was too long to keep."""
        ...

    def data(self, data: bytes, *, mono_ns: int) -> Outcome:
        """Take bytes of the body."""
        ...

    def end(self, *, mono_ns: int) -> bytes:
        """Take the end of the body, proper or not; return what was still kept."""
        ...
