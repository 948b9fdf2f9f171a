"""From log files to the ledger: each log has one tail, which folds it piece by piece in the writer's thread.

Law: the position is committed with what was read up to it, so a tail that dies anywhere begins again at the right byte.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from kt_ledger.clock import Clock
from kt_ledger.reading import Bound, LogReader, read_log
from kt_ledger.store import Store, StoreUnavailable
from kt_ledger.values import Folded
from kt_supervisor.engine.tasks import Tasks
from kt_supervisor.engine.writer import Writer

logger = logging.getLogger(__name__)


PIECES_AT_ONCE = 32
"""Some 8 MiB where nothing is to be counted; fewer as soon as `ENOUGH_EVENTS` are."""

ENOUGH_EVENTS = 1000


class Tail:
    """One log. `make_reader` gives a reader at the stored position, in the writer's thread; `bound`: see `read_log`."""

    def __init__(
        self,
        name: str,
        *,
        path_of: Callable[[int], Path],
        make_reader: Callable[[Store], LogReader],
        writer: Writer,
        clock: Clock,
        tasks: Tasks,
        bound: Bound | None = None,
    ) -> None:
        self.name = name
        self._bound = bound
        self._path_of = path_of
        self._make_reader = make_reader
        self._writer = writer
        self._clock = clock
        self._tasks = tasks
        self._one_at_a_time = asyncio.Lock()
        self._reader: LogReader | None = None
        self._pieces: Iterator[Folded] | None = None
        self._wanted = False
        self._working = False

    async def fold(self, *, closed: bool = False) -> None:
        """Have all that the log held when this was called in the ledger.

        Args:
            closed: nobody writes the log any more: its end is read as an end.

        Raises:
            StoreUnavailable: the rest is folded by a later call.
            OSError: a segment cannot be read.
        """
        async with self._one_at_a_time:
            if self._reader is None:
                await self._writer.do(self._begin)
            target = None if closed else self._end()
            self._pieces = None
            while await self._writer.do(lambda store: self._step(store, closed=closed)):
                assert self._reader is not None
                at = self._reader.wanted
                if target is not None and (at.segment, at.offset) >= target:
                    return

    def poke(self) -> None:
        """Fold soon, without anybody waiting; many pokes are one."""
        self._wanted = True
        if not self._working:
            self._working = True
            self._tasks.start(f"fold {self.name}", self._work())

    async def _work(self) -> None:
        try:
            while self._wanted:
                self._wanted = False
                await self.fold()
        except StoreUnavailable as error:
            logger.warning("%s waits: %s", self.name, error)
        finally:
            self._working = False

    def _begin(self, store: Store) -> None:
        self._reader = self._make_reader(store)

    def _step(self, store: Store, *, closed: bool) -> bool:
        """Fold some pieces at once, as a commit costs more than reading them; return whether there may be others."""
        try:
            if self._reader is None:
                self._reader = self._make_reader(store)
            if self._pieces is None:
                self._pieces = read_log(
                    self._reader, self._path_of, clock=self._clock, closed=closed, bound=self._bound
                )
            batch = _together(islice(self._pieces, PIECES_AT_ONCE))
            if batch is not None:
                store.fold([batch])
        except BaseException:
            self._reader = self._pieces = (
                None  # it may be ahead of the store: the next one begins at the position
            )
            raise
        return batch is not None

    def _end(self) -> tuple[int, int]:
        # Where the reader stands, since earlier segments may have been deleted.
        number = self._reader.wanted.segment if self._reader else 1
        while self._path_of(number + 1).exists():
            number += 1
        try:
            return number, self._path_of(number).stat().st_size
        except FileNotFoundError:
            return number, 0


def _together(pieces: Iterable[Folded]) -> Folded | None:
    """Return consecutive pieces as one: the first one's start, the last one's position, everything in between."""
    whole: Folded | None = None
    for piece in pieces:
        if whole is None:
            whole = piece
        else:
            whole = replace(
                whole,
                position=piece.position,
                events=(*whole.events, *piece.events),
                exchanges=(*whole.exchanges, *piece.exchanges),
                notes=(*whole.notes, *piece.notes),
            )
        if len(whole.events) + len(whole.exchanges) + len(whole.notes) >= ENOUGH_EVENTS:
            break
    return whole
