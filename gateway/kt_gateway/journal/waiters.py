"""Who waits for the journal: for a sync, or for records to be writable again. All but `tell` is the event loop's."""

import asyncio
import time
from collections import deque
from collections.abc import Callable


class Waiters:
    """Coroutines that wait, and a watch over the one that has waited longest."""

    def __init__(self, *, stuck_after_s: float, on_stuck: Callable[[], None]) -> None:
        """Take the time after which a wait for a sync is too long, and what to do then."""
        self._loop = asyncio.get_running_loop()
        self._stuck_after_s = stuck_after_s
        self._on_stuck = on_stuck
        self._for_sync: deque[tuple[int, float, asyncio.Future[bool]]] = deque()
        self._for_health: list[asyncio.Future[bool]] = []
        self._watch: asyncio.TimerHandle | None = None

    def tell(self, what: Callable[..., None], *arguments: object) -> None:
        """Let the event loop call `what`; from any thread."""
        try:
            self._loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            pass  # the loop has ended: there is nobody left to tell

    def for_sync(self, sequence: int) -> asyncio.Future[bool]:
        """Return what becomes true once records up to `sequence` are durable, false once that is given up."""
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._for_sync.append((sequence, time.monotonic(), waiter))
        if self._watch is None:
            self._watch = self._loop.call_later(self._stuck_after_s, self._look)
        return waiter

    def for_health(self) -> asyncio.Future[bool]:
        """Return what becomes true once records can be written again."""
        hopeful: asyncio.Future[bool] = self._loop.create_future()
        self._for_health.append(hopeful)
        return hopeful

    def synced(self, sequence: int) -> None:
        """Let those go on whose records are durable."""
        while self._for_sync and self._for_sync[0][0] <= sequence:
            _resolve(self._for_sync.popleft()[2], True)

    def give_up(self) -> None:
        """Let all go on that wait for a sync: it cannot be had."""
        while self._for_sync:
            _resolve(self._for_sync.popleft()[2], False)

    def recovered(self) -> None:
        """Let those go on that wait to write."""
        hopefuls, self._for_health = self._for_health, []
        for hopeful in hopefuls:
            _resolve(hopeful, True)

    def _look(self) -> None:
        self._watch = None
        if not self._for_sync:
            return
        age_s = time.monotonic() - self._for_sync[0][1]
        if age_s >= self._stuck_after_s:
            self._on_stuck()
        else:
            self._watch = self._loop.call_later(self._stuck_after_s - age_s, self._look)


def _resolve(waiter: asyncio.Future[bool], value: bool) -> None:
    if not waiter.done():  # whoever waited may have been cancelled
        waiter.set_result(value)
