"""A bell: whoever waits for something new is woken, and nobody looks in between."""

import asyncio


class Bell:
    """Rung in the event loop; a waiter that was busy meanwhile hears that it has missed a stroke."""

    def __init__(self) -> None:
        self.strokes = 0
        self._next = asyncio.Event()

    def ring(self) -> None:
        """Wake everybody who waits."""
        self.strokes += 1
        rung, self._next = self._next, asyncio.Event()
        rung.set()

    async def wait(self, seen: int, *, within_s: float) -> bool:
        """Return True once there are more strokes than `seen`, False where there are none in time."""
        try:
            async with asyncio.timeout(within_s):
                while self.strokes == seen:
                    await self._next.wait()
        except TimeoutError:
            return False
        return True
