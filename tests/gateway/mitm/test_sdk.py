"""OpenAI's own client through a listener: what it sees is what it sees without us, and every call is on record.

The SDK is imported by those who use it: it would cost every worker a second when tests are collected.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.gateway.mitm.gateway import Lane
from tests.gateway.mitm.provider import (
    COMPLETION,
    DONE,
    SSE_HEAD,
    USAGE_EVENT,
    Asked,
    Wire,
    chunks,
    event,
    sized,
)

from kt_ledger import journal

MakeLane = Callable[..., Lane]
MESSAGES: Any = [{"role": "user", "content": "hello"}]


def answer(asked: Asked, wire: Wire) -> bool:
    if b'"stream":true' in asked.body.replace(b" ", b""):
        usage = (USAGE_EVENT,) if b"include_usage" in asked.body else ()
        wire.send(SSE_HEAD + chunks(event("hel"), event("lo", finish=True), *usage, DONE))
    else:
        wire.send(sized(COMPLETION))
    return True


@pytest.fixture
def lane(make_lane: MakeLane) -> Lane:
    return make_lane(answer, upstream_api_key="sk-real")


@pytest.fixture
def clients(lane: Lane) -> Iterator[tuple[Any, Any]]:
    import openai

    """A client of ours, and one that talks to the provider directly."""
    with (
        openai.OpenAI(base_url=f"http://127.0.0.1:{lane.port}/{lane.token}/v1", api_key=lane.token) as ours,
        openai.OpenAI(base_url=lane.provider.url, api_key="sk-real") as direct,
    ):
        yield ours, direct


def test_answers_and_streams_are_those_of_a_direct_call(lane: Lane, clients: tuple[Any, Any]) -> None:

    seen = []
    for client in clients:
        plain = client.chat.completions.create(model="m-1", messages=MESSAGES)
        stream = list(client.chat.completions.create(model="m-1", messages=MESSAGES, stream=True))
        seen.append((plain.model_dump(), [chunk.model_dump() for chunk in stream]))

    assert seen[0] == seen[1]
    assert len(seen[0][1]) == 2
    closes = lane.wait_records(journal.CLOSE, 2)
    assert [close["completeness"] for close in closes] == ["exact", "exact"]
    assert [close["counts"]["output"] for close in closes] == [7, 2]


def test_usage_that_the_agent_asked_for_reaches_it(lane: Lane, clients: tuple[Any, Any]) -> None:

    stream = clients[0].chat.completions.create(
        model="m-1", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )

    last = list(stream)[-1]

    assert last.usage is not None
    assert last.usage.total_tokens == 7
    assert lane.wait_records(journal.OPEN)[0]["usage_asked_by_us"] is False


def test_a_refusal_is_raised_once_and_not_tried_again(lane: Lane, clients: tuple[Any, Any]) -> None:
    import openai

    lane.put(grants=[], upstream_api_key="sk-real")

    with pytest.raises(openai.PermissionDeniedError, match="is stopped"):
        clients[0].chat.completions.create(model="m-1", messages=MESSAGES)

    assert len(lane.wait_records(journal.LOCAL)) == 1
    assert lane.provider.log == []


def test_a_hundred_concurrent_calls_are_each_on_record(lane: Lane) -> None:
    import openai

    async def work() -> None:
        base = f"http://127.0.0.1:{lane.port}/{lane.token}/v1"
        async with openai.AsyncOpenAI(base_url=base, api_key=lane.token, max_retries=0) as client:

            async def one(number: int) -> None:
                if number % 2:
                    await client.chat.completions.create(model=f"m-{number}", messages=MESSAGES)
                    return
                made = await client.chat.completions.create(
                    model=f"m-{number}", messages=MESSAGES, stream=True
                )
                assert [chunk async for chunk in made]

            await asyncio.gather(*(one(number) for number in range(100)))

    asyncio.run(asyncio.wait_for(work(), 60))

    closes = lane.wait_records(journal.CLOSE, 100)
    assert len(lane.provider.log) == 100
    assert {record["model"] for record in lane.records(journal.OPEN)} == {
        f"m-{number}" for number in range(100)
    }
    assert {close["completeness"] for close in closes} == {"exact"}
    assert len({close["x"] for close in closes}) == 100
