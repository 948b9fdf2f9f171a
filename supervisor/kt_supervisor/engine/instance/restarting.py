"""Restarts that are due: waiting for their moment, and for their turn in the fleet.

A provider that fails takes all agents with it at once; the guard spaces their returns, so that one outage is not
followed by a storm.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable

from kt_ledger import process_identity
from kt_ledger.clock import Clock
from kt_supervisor.engine.instance.restart_policy import History, Instant
from kt_supervisor.engine.tasks import Tasks

GUARD_LIMIT = 10
GUARD_WINDOW_S = 60.0


class Guard:
    """At most `limit` automatic restarts within `window_s`, over all agents. Whoever comes is given its moment."""

    def __init__(self, *, limit: int = GUARD_LIMIT, window_s: float = GUARD_WINDOW_S) -> None:
        self._window_s = window_s
        self._granted: deque[float] = deque(maxlen=limit)

    def turn_s(self, now_s: float) -> float:
        """Return the moment at which a restart that is due now may begin; first come, first served."""
        full = len(self._granted) == self._granted.maxlen
        moment_s = max(now_s, self._granted[0] + self._window_s) if full else now_s
        self._granted.append(moment_s)
        return moment_s


class Restarting:
    """All restarts that are due in one engine."""

    def __init__(self, *, clock: Clock, tasks: Tasks, chance: random.Random, guard: Guard) -> None:
        self._clock = clock
        self._tasks = tasks
        self._chance = chance
        self._guard = guard
        self._boot_id = process_identity.boot_id()
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def now(self) -> Instant:
        """Return this moment."""
        return Instant(
            boot_id=self._boot_id,
            monotonic_ns=self._clock.monotonic_ns(),
            wall_ns=self._clock.wall_ns(),
        )

    def chance(self) -> float:
        """Return a number from -1 to 1."""
        return self._chance.uniform(-1.0, 1.0)

    def arm(self, instance_id: str, history: History, restart: Callable[[], Awaitable[None]]) -> None:
        """Have `restart` called when the one that is due has come; replaces what was waiting."""
        self.cancel(instance_id)
        if history.due is not None:
            work = self._wait(instance_id, history.remaining_s(self.now()), restart)
            self._waiting[instance_id] = self._tasks.start(f"restart {instance_id}", work)

    def cancel(self, instance_id: str) -> None:
        """Let a restart that still waits never come."""
        if task := self._waiting.pop(instance_id, None):
            task.cancel()

    def is_waiting(self, instance_id: str) -> bool:
        """Tell whether a restart waits for its moment."""
        return instance_id in self._waiting

    async def _wait(self, instance_id: str, wait_s: float, restart: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(wait_s)
        clock = asyncio.get_running_loop()
        await asyncio.sleep(self._guard.turn_s(clock.time()) - clock.time())
        # From here on it is under way: whoever stops the agent waits for it, or interrupts its start.
        self._waiting.pop(instance_id, None)
        await restart()
