"""Where a reader of an instance's log stands: one text that orders like the log itself.

A position names a Run by its number, a place in each of its streams, and how many transitions were told. Every part
only ever grows, so texts of equal width compare as the positions do. A place is the first byte that was not read.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, Self

_TEXT = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,15})\.(\d{1,9})\.(\d{1,15})\.(\d{1,12})", re.ASCII)


class Place(NamedTuple):
    """A byte of one stream of one Run; segments are numbered from 1."""

    segment: int = 1
    offset: int = 0


BEGINNING = Place()


class PositionUnreadable(Exception):
    """A text is no position of a log."""

    exit_code = 2

    def __init__(self, got: str) -> None:
        super().__init__(
            f'got {got[:80]!r} as a position, wanted one that `kt agent logs --json` printed in "position"'
        )


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How far a log was read; the default is its beginning."""

    run: int = 0
    out: Place = BEGINNING
    err: Place = BEGINNING
    transitions: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position that `str` wrote. Raises PositionUnreadable."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise PositionUnreadable(text)
        run, out, out_at, err, err_at, transitions = map(int, found.groups())
        return cls(run, Place(out, out_at), Place(err, err_at), transitions)

    def __str__(self) -> str:
        """Return the text; longer numbers than these widths still read back, they only no longer sort as text."""
        return (
            f"{self.run:06d}.{self.out.segment:06d}.{self.out.offset:010d}."
            f"{self.err.segment:06d}.{self.err.offset:010d}.{self.transitions:08d}"
        )
