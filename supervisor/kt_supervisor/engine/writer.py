"""The one thread that touches the ledger, and what the rest of the engine awaits of it."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from kt_ledger.clock import Clock
from kt_ledger.store import Store, StoreUnavailable
from kt_supervisor.engine.telling.bell import Bell

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Writer:
    """Runs work on the store, one piece after another, each in the store's own thread."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._store: Store | None = None
        self._file: tuple[int, int] | None = None
        self._told = 0
        self.events = Bell()
        """Rung once there are events that were not there before."""
        self.trouble: StoreUnavailable | None = StoreUnavailable(
            f"ledger {path}: is only being opened; try again"
        )

    async def open(self) -> bool:
        """Open the store; False, with `trouble` set, where that is not possible now."""
        try:
            await self._run(self._open)
        except StoreUnavailable as error:
            if str(error) != str(self.trouble):
                logger.error("%s", error)
            self.trouble = error
            return False
        self.trouble = None
        return True

    async def look(self) -> None:
        """See whether the open ledger is still the one of that name; what is committed into another is lost."""
        replaced = await self._run(self._is_replaced)
        if replaced and self.trouble is None:
            self.trouble = StoreUnavailable(
                f"ledger {self._path}: was removed or replaced while in use; wanted the file that was opened: put "
                "it back, or stop the engine (`kt engine stop`) and start it again with the other one; nothing that "
                "agents report meanwhile is lost"
            )
            logger.error("%s", self.trouble)
        elif not replaced and self._store is not None:
            self.trouble = None

    async def do(self, work: Callable[[Store], T]) -> T:
        """Return what `work` returns; it should take well below 100 ms.

        Raises:
            StoreUnavailable: the store is not open, or cannot be written at this moment.
        """
        return await self._run(lambda: work(self._opened()))

    async def close(self) -> None:
        """Release the file and end the thread; work under way is finished first."""
        await self._run(self._close)
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        # Shielded: a caller that gives up must not leave a transaction that nobody knows the end of.
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, self._and_ring, loop, work))

    def _and_ring(self, loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> T:
        """Do a piece of work; ring where it has left an event, whoever gave it and however it ends."""
        try:
            return work()
        finally:
            if self._store is not None and self._store.events_written != self._told:
                self._told = self._store.events_written
                loop.call_soon_threadsafe(self.events.ring)

    def _open(self) -> None:
        # Imported here, in the writer's own thread: the control socket answers while SQLAlchemy loads.
        from kt_ledger.store.sqlite import open_store

        if self._store is None:
            self._store = open_store(self._path, clock=self._clock)
            self._file = self._identity()

    def _opened(self) -> Store:
        if self._store is None or self.trouble is not None:
            assert self.trouble is not None
            raise type(self.trouble)(str(self.trouble))
        return self._store

    def _identity(self) -> tuple[int, int] | None:
        try:
            facts = self._path.stat()
        except OSError:
            return None
        return facts.st_dev, facts.st_ino

    def _is_replaced(self) -> bool:
        return self._store is not None and self._identity() != self._file

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
