"""The real `openai` SDK, straight at the provider and through a listener: the same objects, and every call a row.

The SDK is imported by those who use it: it would cost every worker a second when tests are collected.
"""

import asyncio
import time
from typing import Any

import pytest

from kt_cli.demo import judge

DEADLINE_S = 30
MESSAGES: list[Any] = [{"role": "user", "content": "Say something about ledgers."}]
ASKED = {"include_usage": True}


def options(stream: bool, usage: bool) -> dict[str, Any]:
    chosen: dict[str, Any] = {"stream": True} if stream else {}
    return {**chosen, "stream_options": ASKED} if usage else chosen


def sync_answer(base_url: str, model: str, chosen: dict[str, Any]) -> list[Any]:
    import openai

    with openai.OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        answer = client.chat.completions.create(model=model, messages=MESSAGES, **chosen)
        return [part.model_dump() for part in answer] if chosen else [answer.model_dump()]


async def async_answer(base_url: str, model: str, chosen: dict[str, Any]) -> list[Any]:
    import openai

    async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        answer = await client.chat.completions.create(model=model, messages=MESSAGES, **chosen)
        return [part.model_dump() async for part in answer] if chosen else [answer.model_dump()]


@pytest.mark.parametrize(
    ("case", "stream", "usage"),
    [
        ("demo/answer", False, False),
        ("demo/squeezed", False, False),
        ("demo/story", True, False),
        ("demo/story", True, True),
        ("tool-calls-json", False, False),
        ("stream-tool-calls", True, True),
        ("gzip-json", False, False),
        ("stream-gzip", True, True),
        ("cached-json", False, False),
        ("close-delimited-json", False, False),
        ("stream-close-delimited", True, False),
    ],
)
@pytest.mark.parametrize("how", ["sync", "async"])
def test_an_sdk_sees_the_same_objects_as_without_us(
    stage: Any, case: str, stream: bool, usage: bool, how: str
) -> None:
    chosen = options(stream, usage)
    mark = f"{how}-{'asked' if usage else 'plain'}"

    def ask(base_url: str, model: str) -> list[Any]:
        if how == "sync":
            return sync_answer(base_url, model, chosen)
        return asyncio.run(async_answer(base_url, model, chosen))

    direct = ask(f"{stage.provider.url}/v1", f"{case}@direct-{mark}")
    metered = ask(f"{stage.origin}/v1", f"{case}@sdk-{mark}")

    assert direct == metered
    row = stage.row_of(f"{case}@sdk-{mark}")
    [call] = settled(stage, f"{case}@sdk-{mark}")
    assert ("exact", "yes", call.status) == (row["completeness"], row["sent"], row["status"])
    assert (call.input_tokens, call.output_tokens) == (row["input_tokens"], row["output_tokens"])


def test_an_sdk_sees_a_refusal_of_the_provider_as_such(stage: Any) -> None:
    import openai

    with pytest.raises(openai.RateLimitError):
        sync_answer(f"{stage.origin}/v1", "status-429@sdk", {})

    row = stage.row_of("status-429@sdk")
    assert (429, "yes", "unknown") == (row["status"], row["sent"], row["completeness"])


def test_an_sdk_sees_a_cut_stream_as_an_error(stage: Any) -> None:
    import openai

    with pytest.raises(openai.APIConnectionError):
        sync_answer(f"{stage.origin}/v1", "demo/cut@sdk-cut", {"stream": True})

    assert "unknown" == stage.row_of("demo/cut@sdk-cut")["completeness"]


def test_fifty_calls_at_once_are_fifty_rows(stage: Any) -> None:
    async def all_at_once() -> None:
        names = [f"demo/answer@crowd-{number}" for number in range(50)]
        await asyncio.gather(*(async_answer(f"{stage.origin}/v1", name, {}) for name in names))

    asyncio.run(all_at_once())

    calls = settled(stage, "@crowd-")
    verdict = judge.judge(calls, [row for row in stage.rows() if "@crowd-" in str(row["model_asked"])])
    assert 50 == verdict.provider_calls
    assert verdict.agrees, verdict


def settled(stage: Any, mark: str) -> list[Any]:
    """Return the provider's calls with this mark, once it has noted the end of each."""
    end = time.monotonic() + DEADLINE_S
    while True:
        calls = [call for call in stage.provider.calls() if mark in call.model]
        if all(call.answered for call in calls):
            return calls
        assert time.monotonic() < end, "the provider never finished"
