import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kt_supervisor.engine.instance import readiness
from kt_supervisor.engine.instance.readiness import Interrupted, Interruption, NotReady


def looked(*, exited: bool = False, interrupted: bool = False, found: bool | None = True) -> Any:
    """Run `check` on a keeper in this condition; `found` None: the check never ends. Return what it raised."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        agent_exited, interruption = loop.create_future(), Interruption()
        waiting = interruption.begin()
        if exited:
            agent_exited.set_result(None)
        if interrupted:
            interruption.set()

        async def look() -> bool:
            if found is None:
                await asyncio.Event().wait()
            return bool(found)

        task = asyncio.create_task(look())
        link: Any = SimpleNamespace(agent_exited=agent_exited)
        try:
            await readiness.check(link, waiting, task, wanted="a sign", deadline_s=0.05)
        finally:
            await asyncio.gather(task, return_exceptions=True)
            assert task.done()

    try:
        asyncio.run(run())
    except NotReady as told:
        return told
    return None


def test_what_is_found_in_time_is_ready() -> None:
    assert looked() is None


def test_a_stop_comes_before_everything_else() -> None:
    assert isinstance(looked(interrupted=True, exited=True), Interrupted)


@pytest.mark.parametrize(
    ("facts", "got", "ended"),
    [
        ({"found": None}, "was not ready within 0.05 s", False),
        ({"found": None, "exited": True}, "ended before it was ready", True),
        ({"found": False}, "could not be looked at", False),
    ],
)
def test_what_is_not_ready_says_why(facts: dict[str, Any], got: str, ended: bool) -> None:
    told = looked(**facts)

    assert (got, "a sign", ended) == (told.got, told.wanted, told.ended)


def test_nobody_is_interrupted_before_a_start_or_twice() -> None:
    async def run() -> bool:
        interruption = Interruption()
        interruption.set()
        first = interruption.begin()
        assert not first.done()
        interruption.set()
        interruption.set()
        return first.done()

    assert asyncio.run(run())
