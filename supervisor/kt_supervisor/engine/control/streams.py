"""Answers that go on: written as their source yields, at the speed of their reader."""

from collections.abc import AsyncIterator

from aiohttp import web

NDJSON = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"


async def ndjson(request: web.Request, batches: AsyncIterator[bytes]) -> web.StreamResponse:
    """Answer with lines of JSON."""
    return await stream(request, batches, content_type=NDJSON)


async def from_first(batches: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Return the same batches once the first is there: a refusal must come before the head of an answer."""
    first = await anext(batches, b"")

    async def all_of_them() -> AsyncIterator[bytes]:
        yield first
        async for batch in batches:
            yield batch

    return all_of_them()


async def stream(
    request: web.Request, batches: AsyncIterator[bytes], *, content_type: str
) -> web.StreamResponse:
    """Answer with what `batches` yields; a reader that has seen enough ends it.

    The next batch is made when the one before has been taken: who reads slowly waits for itself alone.
    """
    answer = web.StreamResponse(headers={"content-type": content_type, "cache-control": "no-store"})
    await answer.prepare(request)
    try:
        async for batch in batches:
            await answer.write(batch)
        await answer.write_eof()
    except ConnectionError:
        pass
    return answer
