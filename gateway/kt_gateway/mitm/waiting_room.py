"""Where the calls of a paused instance wait. Bounded; event loop's thread only."""

import asyncio
from collections.abc import Callable

from kt_gateway.mitm.hooks import End

HELD_LIMIT = 256
"""Calls of one listener. A held one is not read: it keeps at most 64 KiB of ours and 128 KiB of asyncio's buffer."""
LOOK_EVERY_S = 0.5
"""How often it is asked whether the sender of a held call is still there: what is not read tells no end."""


class WaitingRoom:
    """Held calls of one listener, in the order of their arrival."""

    def __init__(self, limit: int = HELD_LIMIT) -> None:
        self._limit = limit
        self._waiting: dict[asyncio.Future[End], None] = {}

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def wait(self, left_s: float, is_gone: Callable[[], bool]) -> End:
        """Wait until let go, for at most `left_s`; return why the wait is over."""
        if len(self._waiting) >= self._limit:
            return End.FULL
        loop = asyncio.get_running_loop()
        place: asyncio.Future[End] = loop.create_future()
        self._waiting[place] = None
        deadline_s = loop.time() + left_s
        try:
            while not place.done():
                if is_gone():
                    return End.GONE
                rest_s = deadline_s - loop.time()
                if rest_s <= 0:
                    return End.EXPIRED
                await asyncio.wait([place], timeout=min(rest_s, LOOK_EVERY_S))
            return place.result()
        finally:
            self._waiting.pop(place, None)

    def let_go(self, end: End) -> None:
        """End the wait of all that are here, first come first."""
        waiting, self._waiting = self._waiting, {}
        for place in waiting:
            if not place.done():
                place.set_result(end)
