"""Known secrets in what an agent prints: overwritten in the files, and out of reach until that is done.

The keeper's bytes go from pipe to file without anybody looking (decision 0080), so they are looked at here. Law: every
reader of a live Run in this engine reads through its `Scrubber`, which gives out nothing that it has not
looked at. A secret becomes as many `*` as it has bytes, so every position stays what it was. What could be the
beginning of one, at the end of what is there, waits for the bytes that decide it, or for the end of the Run.
"""

import asyncio
import errno
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator

from kt_ledger.layout import RunLayout
from kt_supervisor.engine.output.known_secrets import KnownSecrets
from kt_supervisor.engine.output.positions import BEGINNING, Place
from kt_supervisor.engine.output.run_logs import STREAMS
from kt_supervisor.engine.output.segments import Segments
from kt_supervisor.engine.tasks import Tasks

logger = logging.getLogger(__name__)

PIECE_BYTES = 128 << 10
"""Small enough to stay in a processor's cache between the reading and the looking."""
REST_S = 0.1
"""Between two looks that nobody waits for: readers look by themselves, and an agent may print all the time."""
_FILLER = b"*"


class Scrubber:
    """One stream of one Run; may be used by several threads."""

    def __init__(self, segments: Segments, known: KnownSecrets) -> None:
        self._segments = segments  # unguarded: what is on disk
        self._known = known
        self._lock = threading.Lock()
        self._at = BEGINNING
        self._clean = BEGINNING
        self._tail = b""  # the last bytes before `_at` as they were printed: a secret may begin in them
        self._places: list[tuple[Place, int]] = []  # where these bytes are: (place, length), oldest first
        self._closed = False

    def clean_to(self, place: Place | None = None) -> Place:
        """Look at what there is up to `place`, or all of it; return the place behind what may be read now.

        It is beyond `place` wherever there are bytes beyond it, unless these may belong to a secret.
        """
        while place is None or self._clean <= place:
            with self._lock:
                if not self._step():
                    break
        return self._clean

    def close(self) -> None:
        """Say that nothing will be printed any more: what looked like the beginning of a secret is none."""
        with self._lock:
            self._closed = True
        self.clean_to()
        with self._lock:
            self._clean = self._at

    def _step(self) -> bool:
        """Look at the next piece; False where there is none."""
        over = self._segments.exists(self._at.segment + 1)
        data = self._segments.read(self._at, PIECE_BYTES)
        if data:
            self._look(data)
            return True
        if data is None:
            later = [number for number in self._segments.numbers() if number > self._at.segment]
            if not later:
                return False
            self._tail, self._places = b"", []  # what was before it was deleted to keep the disk cap
            self._at = self._clean = Place(later[0], 0)
            return True
        if over:
            self._at = Place(self._at.segment + 1, 0)
            self._mark_clean()
        return over

    def _look(self, data: bytes) -> None:
        window = self._tail + data
        places = [*self._places, (self._at, len(data))]
        for begin, end in _found(window, self._known.values):
            if end > len(self._tail):  # else it was found before
                self._overwrite(places, begin, end)
        self._at = Place(self._at.segment, self._at.offset + len(data))
        kept = max(self._known.longest - 1, 0)
        self._tail = window[len(window) - kept :] if kept < len(window) else window
        self._places = list(_last(places, len(self._tail)))
        self._mark_clean()

    def _mark_clean(self) -> None:
        undecided = 0 if self._closed else _undecided(self._tail, self._known.values)
        if not undecided:
            self._clean = self._at
            return
        held = next(iter(_last(self._places, undecided)))
        self._clean = max(self._clean, held[0])

    def _overwrite(self, places: list[tuple[Place, int]], begin: int, end: int) -> None:
        at = 0
        for place, length in places:
            first, last = max(begin, at), min(end, at + length)
            if first < last:
                self._fill(Place(place.segment, place.offset + first - at), last - first)
            at += length

    def _fill(self, place: Place, count: int) -> None:
        path = self._segments.files.segment(self._segments.stream, place.segment)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return  # deleted meanwhile, and the secret with it; a link is no output, and is read by nobody
            raise
        try:
            os.pwrite(descriptor, _FILLER * count, place.offset)
        finally:
            os.close(descriptor)


class RunScrubbing:
    """Both streams of one Run under way."""

    def __init__(self, name: str, files: RunLayout, known: KnownSecrets, tasks: Tasks) -> None:
        self.known = known
        self._name = name
        self._files = files
        self._tasks = tasks
        self._streams = {stream: Scrubber(Segments(files, stream), known) for stream in STREAMS}
        self._wanted = False
        self._working = False

    def segments(self, stream: str) -> Segments:
        """Return one stream as it may be read."""
        return Segments(self._files, stream, bound=self._streams[stream].clean_to)

    def bound(self, stream: str) -> Callable[[int, int], tuple[int, int]]:
        """Return the same for a reader of the ledger's."""
        return lambda segment, offset: self._streams[stream].clean_to(Place(segment, offset))

    def poke(self) -> None:
        """Look at what came soon, without anybody waiting; many pokes are one."""
        self._wanted = True
        if not self._working:
            self._working = True
            self._tasks.start(f"secrets in the output of {self._name}", self._work())

    async def _work(self) -> None:
        try:
            while self._wanted:
                self._wanted = False
                await asyncio.to_thread(self._look)
                await asyncio.sleep(REST_S)
        except OSError as error:
            logger.warning("the output of %s cannot be looked at for secrets now: %s", self._name, error)
        finally:
            self._working = False

    def _look(self) -> None:
        for scrubber in self._streams.values():
            scrubber.clean_to()

    def close(self) -> None:
        """Look at everything, once the Run has ended; blocks. Raises OSError."""
        for scrubber in self._streams.values():
            scrubber.close()


def _found(window: bytes, values: tuple[bytes, ...]) -> list[tuple[int, int]]:
    """Return where the values are, whatever they have in common, as spans that do not touch.

    All are looked for in what was printed. Takes time in proportion to the window also where a value overlaps itself.
    """
    spans = sorted(span for value in values for span in _runs(window, value))
    merged: list[tuple[int, int]] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _runs(window: bytes, value: bytes) -> Iterator[tuple[int, int]]:
    """Yield where one value is; of places that overlap by its period, the whole run at once."""
    period = _period(value)
    again = value[-period:]
    at = window.find(value)
    while at >= 0:
        end = at + len(value)
        if period < len(value):
            run = re.compile(b"(?:%b)*+" % re.escape(again)).match(window, end)
            end = run.end() if run else end
        yield at, end
        # Places may overlap by more than the period as well: the next one begins after the last one found.
        at = window.find(value, end - len(value) + 1 if period < len(value) else end)


def _period(value: bytes) -> int:
    """Return by how much a value has to be shifted to lie on itself: its length, where it never does."""
    return next(shift for shift in range(1, len(value) + 1) if value[shift:] == value[: len(value) - shift])


def _undecided(tail: bytes, values: tuple[bytes, ...]) -> int:
    """Return how many of the last bytes could be the beginning of a value whose rest is not there yet."""
    most = 0
    for value in values:
        at = max(0, len(tail) - len(value) + 1)
        while 0 <= (at := tail.find(value[:1], at)) < len(tail) - most:
            if value.startswith(tail[at:]):
                most = len(tail) - at
                break
            at += 1
    return most


def _last(places: list[tuple[Place, int]], count: int) -> Iterator[tuple[Place, int]]:
    """Yield where the last `count` bytes are."""
    total = sum(length for _, length in places)
    passed = total - count
    for place, length in places:
        if length > passed:
            yield Place(place.segment, place.offset + max(passed, 0)), length - max(passed, 0)
        passed -= length
