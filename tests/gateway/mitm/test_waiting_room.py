import asyncio

from kt_gateway.mitm.hooks import End
from kt_gateway.mitm.waiting_room import WaitingRoom


def never() -> bool:
    return False


def test_who_came_first_goes_first() -> None:
    async def run() -> list[int]:
        room, order = WaitingRoom(), []

        async def wait(number: int) -> None:
            assert End.LOOK is await room.wait(60, never)
            order.append(number)

        tasks = [asyncio.ensure_future(wait(number)) for number in range(5)]
        await asyncio.sleep(0)
        room.let_go(End.LOOK)
        await asyncio.gather(*tasks)
        return order

    assert [0, 1, 2, 3, 4] == asyncio.run(run())


def test_a_full_room_says_so_at_once_and_has_room_again_later() -> None:
    async def run() -> tuple[End, End, int]:
        room = WaitingRoom(limit=1)
        first = asyncio.ensure_future(room.wait(60, never))
        await asyncio.sleep(0)
        full = await room.wait(60, never)
        room.let_go(End.LOOK)
        await first
        return full, await room.wait(0, never), len(room)

    assert (End.FULL, End.EXPIRED, 0) == asyncio.run(run())


def test_who_has_left_is_noticed_without_a_release() -> None:
    assert End.GONE is asyncio.run(WaitingRoom().wait(60, lambda: True))


def test_a_wait_that_is_cancelled_gives_its_place_back() -> None:
    async def run() -> int:
        room = WaitingRoom()
        task = asyncio.ensure_future(room.wait(60, never))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return len(room)

    assert 0 == asyncio.run(run())
