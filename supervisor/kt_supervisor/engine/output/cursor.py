"""One stream of one Run, line by line from a place on; what was deleted in between is told as a gap.

A line longer than a mebibyte comes in parts of that length, never cut inside a UTF-8 character: memory stays bounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kt_supervisor.engine.output.positions import BEGINNING, Place
from kt_supervisor.engine.output.segments import Segments

PIECE_BYTES = 256 << 10
PART_BYTES = 1 << 20
CHARACTER_BYTES = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end, or a gap. `place` is what follows it; `at_ns` wall clock, of its first byte.

    `part`: it goes on in the next one. `unfinished`: its end is not written yet; `place` is then where it begins.
    """

    at_ns: int
    stream: str
    data: bytes
    place: Place
    part: bool = False
    unfinished: bool = False
    gap: "Gap | None" = None


@dataclass(frozen=True, slots=True)
class Gap:
    """What was deleted before a reader came to it; `missed_bytes` is None where nobody counted."""

    stream: str = ""
    missed_bytes: int | None = None
    runs: int = 0


class Cursor:
    """`lines` may be called again for what came since, once it was read to its end."""

    def __init__(self, segments: Segments, place: Place = BEGINNING) -> None:
        self._segments = segments
        self._place = place
        self._times = segments.times(place.segment)
        self._rest = b""
        self._rest_at_ns = 0
        self._rest_place = place
        self._skipping = False

    def lines(self, *, final: bool, unfinished: bool = False) -> Iterator[Line]:
        """Yield the complete lines there are.

        Args:
            final: nothing follows, so a last line needs no end.
            unfinished: show a last line without end, too; it comes again once it has one.
        """
        while True:
            over = self._segments.exists(self._place.segment + 1)
            data = self._segments.read(self._place, PIECE_BYTES)
            if data:
                self._times.refresh()
                yield from self._split(data)
            elif data is None:
                if (gap := self._jump()) is None:
                    break
                yield gap
            elif over:
                self._enter(self._place.segment + 1)
            elif final and (gap := self._jump()) is not None:
                yield gap
            else:
                break
        if final and self._rest:
            yield self._line(self._rest_at_ns, self._rest)
            self._rest = b""
        elif unfinished and self._rest:
            yield self._line(self._rest_at_ns, self._rest, place=self._rest_place, unfinished=True)

    def _split(self, data: bytes) -> Iterator[Line]:
        at = 0
        if self._skipping:
            end = data.find(b"\n") + 1
            self._skipping = not end
            at = end or len(data)
            self._advance(at)
        while (end := data.find(b"\n", at)) >= 0:
            yield from self._take(data[at:end])
            line, self._rest = self._rest, b""
            self._advance(1)
            yield self._line(self._rest_at_ns, line)
            at = end + 1
        if at < len(data):
            yield from self._take(data[at:])

    def _take(self, chunk: bytes) -> Iterator[Line]:
        """Have all but whole parts of a line in `_rest`."""
        self._begin()
        while len(self._rest) + len(chunk) > PART_BYTES + CHARACTER_BYTES:
            cut = max(0, PART_BYTES - len(self._rest))
            cut += _lacking(self._rest + chunk[:cut])
            self._advance(cut)
            yield self._line(self._rest_at_ns, self._rest + chunk[:cut], part=True)
            chunk, self._rest = chunk[cut:], b""
            self._begin()
        self._rest += chunk
        self._advance(len(chunk))

    def _begin(self) -> None:
        if not self._rest:
            self._rest_at_ns = self._times.at(self._place.offset)
            self._rest_place = self._place

    def _advance(self, count: int) -> None:
        self._place = Place(self._place.segment, self._place.offset + count)

    def _enter(self, number: int) -> None:
        self._place = Place(number, 0)
        self._times = self._segments.times(number)

    def _jump(self) -> Line | None:
        """Go on behind what is gone; None where nothing is there yet."""
        numbers = [number for number in self._segments.numbers() if number > self._place.segment]
        if not numbers:
            return None
        deleted = self._segments.deleted()
        told = numbers[0] == deleted.through + 1
        missed = deleted.missed_by(self._place) + len(self._rest) if told else None
        self._rest = b""
        self._skipping = not (told and deleted.whole)
        self._enter(numbers[0])
        self._times.refresh()
        return Line(
            self._times.at(0), self._segments.stream, b"", self._place, gap=Gap(self._segments.stream, missed)
        )

    def _line(
        self,
        at_ns: int,
        data: bytes,
        *,
        place: Place | None = None,
        part: bool = False,
        unfinished: bool = False,
    ) -> Line:
        return Line(at_ns, self._segments.stream, data, place or self._place, part, unfinished)


def _lacking(data: bytes) -> int:
    """Return how many bytes the last UTF-8 character lacks to be whole (RFC 3629, section 3)."""
    for back in range(1, 4):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            wanted = (
                2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4 if byte >> 3 == 0b11110 else 1
            )
            return max(0, wanted - back)
    return 0
