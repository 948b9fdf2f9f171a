"""The one place where concurrent work begins: every piece has a name, and a piece that fails says so and ends alone."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class Tasks:
    """All work of one engine that nobody waits for."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin `work`; its failure is logged under its name and reaches nobody else."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(self._guarded(name, work), name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def end(self) -> None:
        """Cancel what still runs, and wait for it."""
        running = [task for task in self._running if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @staticmethod
    async def _guarded(name: str, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await work
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("%s failed", name)
            return None
