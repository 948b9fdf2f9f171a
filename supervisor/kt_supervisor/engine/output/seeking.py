"""Finding the place to read from without reading what is before it: the last lines, or the first since a moment.

What is found by time is as good as the clock was: the index is searched as if the wall clock had never gone back.
"""

from kt_supervisor.engine.output.positions import BEGINNING, Place
from kt_supervisor.engine.output.segments import Segments

BLOCK_BYTES = 64 << 10


def last_lines(
    segments: Segments, count: int, *, final: bool, lower: Place = BEGINNING, block_bytes: int = BLOCK_BYTES
) -> tuple[Place, int]:
    """Return where the last `count` lines begin, and how many lines that are.

    Args:
        segments: one stream of one Run.
        count: how many are wanted; with 0, the place behind the last complete line.
        final: nothing follows, so what has no end is a line as well.
        lower: go back no further than this.
        block_bytes: how much is read at once.
    """
    numbers = [number for number in segments.numbers() if number >= lower.segment]
    found = 0
    wanted = count + 1  # newlines: the one before the first line is looked for
    at_end = True
    for number in reversed(numbers):
        begin = lower.offset if number == lower.segment else 0
        end = segments.size(number)
        while end > begin:
            start = max(begin, end - block_bytes)
            block = segments.read(Place(number, start), end - start)
            if block is None:
                return Place(number, end), max(found - 1, 0)  # deleted meanwhile: this is where it begins now
            if at_end and block:
                at_end = False
                wanted -= final and not block.endswith(b"\n")
                if wanted == 0:
                    return Place(number, start + len(block)), 0
            here = block.count(b"\n")
            if found + here >= wanted:
                return Place(number, start + _nth_last(block, wanted - found) + 1), count
            found += here
            end = start
    unended = count + 1 - wanted  # 1 where the last line has no end and counts
    return lower, found + unended


def since(segments: Segments, wall_ns: int) -> Place | None:
    """Return where the first line begins whose first byte was written at `wall_ns` or later; None without one."""
    numbers = segments.numbers()
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        if segments.times(numbers[middle]).entry(0)[1] >= wall_ns:
            high = middle
        else:
            low = middle + 1
    for number in numbers[max(low - 1, 0) :]:
        times = segments.times(number)
        entry = times.find(wall_ns=wall_ns)
        if entry < times.count:
            offset = times.entry(entry)[0]
            if number == numbers[0] and offset == 0:
                return BEGINNING  # what is older was deleted, or never there: the cursor says which
            return _line_start(segments, Place(number, offset))
    return None


def _line_start(segments: Segments, place: Place) -> Place:
    """Return the first beginning of a line at or behind `place`."""
    before = (
        segments.read(Place(place.segment, place.offset - 1), 1)
        if place.offset
        else _last_byte(segments, place)
    )
    if before in (b"\n", b""):
        return place
    while True:
        block = segments.read(place, BLOCK_BYTES)
        if block and (end := block.find(b"\n")) >= 0:
            return Place(place.segment, place.offset + end + 1)
        if block:
            place = Place(place.segment, place.offset + len(block))
        elif segments.exists(place.segment + 1):
            place = Place(place.segment + 1, 0)
        else:
            return place


def _last_byte(segments: Segments, place: Place) -> bytes:
    number = place.segment - 1
    if not number or not (size := segments.size(number)):
        return b""
    return segments.read(Place(number, size - 1), 1) or b""


def _nth_last(block: bytes, count: int) -> int:
    at = len(block)
    for _ in range(count):
        at = block.rfind(b"\n", 0, at)
    return at
