import asyncio
import sys
from typing import Any

import pytest

from kt_client.asynchronous import AsyncClient
from kt_client.blocking import Client
from kt_client.errors import EngineAway, EngineLate, EngineLost, NotFound

TALKS = "import time\nfor n in range(3): print('line', n, flush=True)\ntime.sleep(600)"


def test_one_agents_life(shared_client: Client) -> None:
    async def life() -> list[str]:
        kt = AsyncClient(shared_client.files.root)
        await kt.register("bot", kind="command", command=[sys.executable, "-u", "-c", TALKS])
        await kt.start("bot")
        seen = []
        async for line in kt.logs("bot", follow=True):
            seen.append(line["text"])
            if line["text"] == "line 2":
                break
        both = await asyncio.gather(kt.show("bot"), kt.usage("bot"), kt.list(), kt.engine_status())
        assert all(document["schema_version"] for document in both)
        await kt.stop("bot", timeout_s=5)
        return seen

    seen = asyncio.run(life())

    assert ["line 0", "line 1", "line 2"] == [text for text in seen if text.startswith("line")]


def test_it_starts_an_engine_where_a_stream_is_asked_for(shared_client: Client) -> None:
    shared_client.register("bot", kind="mock")
    shared_client.engine_stop()

    async def lines() -> list[Any]:
        return [line async for line in AsyncClient(shared_client.files.root).logs("bot")]

    assert [] == asyncio.run(lines())
    assert shared_client.engine_status()["running"]


def test_a_follower_that_gives_up_leaves_nothing_open(shared_client: Client) -> None:
    shared_client.register("bot", kind="command", command=[sys.executable, "-u", "-c", TALKS])
    shared_client.start("bot")

    async def give_up() -> int:
        kt = AsyncClient(shared_client.files.root)

        async def follow() -> None:
            async for _ in kt.logs("bot", follow=True):
                pass

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(follow(), 0.3)
        return len(asyncio.all_tasks())

    assert 1 == asyncio.run(give_up())


def test_what_goes_wrong_is_of_the_same_kind(script: Any, kt: Any) -> None:
    script.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{")
    (kt.state / "ledger.db").touch()

    async def fails() -> None:
        with pytest.raises(EngineLost):
            await AsyncClient(kt.state).stop("bot")
        with pytest.raises(EngineAway):
            await AsyncClient(kt.state.parent / "none", start_engine=False).register("x", kind="mock")
        with pytest.raises(NotFound):
            await AsyncClient(kt.state.parent / "none").show("x")

    asyncio.run(fails())


def test_an_engine_that_hangs_is_not_waited_for_for_ever(script: Any, kt: Any) -> None:
    from kt_client.wire import Request

    async def late() -> None:
        with pytest.raises(EngineLate):
            await AsyncClient(kt.state).perform(Request(method="GET", target="/v1/agents", timeout_s=0.05))

    asyncio.run(late())
