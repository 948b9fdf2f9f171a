import asyncio
import random
from dataclasses import replace

from kt_ledger.clock import ManualClock
from kt_supervisor.engine.instance.restart_policy import Due, History
from kt_supervisor.engine.instance.restarting import Guard, Restarting
from kt_supervisor.engine.tasks import Tasks


def restarting(guard: Guard | None = None) -> Restarting:
    return Restarting(clock=ManualClock(), tasks=Tasks(), chance=random.Random(1), guard=guard or Guard())


def due_in(waiting: Restarting, seconds: float) -> History:
    return History(due=Due(at=waiting.now().later(seconds), wait_s=seconds, why="back-off"))


def test_so_many_begin_at_once_and_the_others_one_by_one_as_the_window_slides() -> None:
    guard = Guard(limit=3, window_s=60)

    assert [0, 0, 5, 60, 60, 65, 120] == [guard.turn_s(now) for now in (0, 0, 5, 6, 7, 8, 9)]


def test_a_quiet_minute_lets_everybody_begin_again() -> None:
    guard = Guard(limit=2, window_s=60)
    for _ in range(2):
        guard.turn_s(0)

    assert [61, 61] == [guard.turn_s(61), guard.turn_s(61)]


def test_a_restart_that_is_due_is_called_once() -> None:
    async def run() -> int:
        waiting, called = restarting(), asyncio.Event()
        count = 0

        async def restart() -> None:
            nonlocal count
            count += 1
            called.set()

        waiting.arm("a", due_in(waiting, 0.0), restart)
        await asyncio.wait_for(called.wait(), 5)
        return count + (100 if waiting.is_waiting("a") else 0)

    assert 1 == asyncio.run(run())


def test_one_that_is_cancelled_or_replaced_never_comes() -> None:
    async def run() -> list[str]:
        waiting, told, done = restarting(), [], asyncio.Event()

        def telling(word: str) -> object:
            async def restart() -> None:
                told.append(word)
                done.set()

            return restart

        waiting.arm("a", due_in(waiting, 3600.0), telling("first"))  # type: ignore[arg-type]
        waiting.arm("a", due_in(waiting, 0.0), telling("second"))  # type: ignore[arg-type]
        waiting.arm("b", due_in(waiting, 3600.0), telling("other"))  # type: ignore[arg-type]
        waiting.cancel("b")
        await asyncio.wait_for(done.wait(), 5)
        assert not waiting.is_waiting("b")
        return told

    assert ["second"] == asyncio.run(run())


def test_nothing_due_waits_for_nothing() -> None:
    async def run() -> bool:
        waiting = restarting()

        async def restart() -> None:
            raise AssertionError("nothing was due")

        waiting.arm("a", replace(History(), due=None), restart)
        return waiting.is_waiting("a")

    assert not asyncio.run(run())
