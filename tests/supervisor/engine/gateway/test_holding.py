import asyncio
import http.client
import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.provider import Seen

from kt_manifest.contract.capability import Declaration, Level, Support
from kt_supervisor.engine.gateway.client import GatewayAway, GatewayClient

# Into a file: what it prints is kept without the token that stands in the address.
TELLS = """
import os, time
with open("address.new", "w") as file:
    file.write(os.environ["KT_RUN"] + " " + os.environ["OPENAI_BASE_URL"])
os.rename("address.new", "address")
time.sleep(600)
"""
BODY = json.dumps({"model": "demo/answer", "messages": [{"role": "user", "content": "hi"}]})


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def observed(house: Any, provider: Seen, level: Level = Level.BEST_EFFORT) -> str:
    """Start an observed agent; return the address that it was told."""
    declaration = Declaration(pause=Support(linux=level, macos=level))
    house.register("bot", TELLS, observe=True, declaration=declaration)
    house.set("bot", "metering.upstream_base_url", f"{provider.url}/v1")
    house.start("bot")
    return address(house)


def address(house: Any) -> str:
    run_id = house.entry("bot")["run_id"]
    file = house.files.home("bot") / "address"

    def told() -> Any:
        found = file.read_text().split() if file.exists() else []
        return found[1] if found[:1] == [run_id] else None

    return str(house.until(told, "it told its address"))


def call(base_url: str) -> tuple[int, Any]:
    base = urlsplit(base_url)
    connection = http.client.HTTPConnection(base.netloc, timeout=60)
    connection.request("POST", base.path + "/chat/completions", BODY, {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def held(house: Any, count: int) -> None:
    """Return once the gateway holds this many calls."""

    async def ask() -> int:
        try:
            async with GatewayClient(house.files.gateway.admin) as client:
                return (await client.status()).held
        except GatewayAway:
            return -1

    house.until(lambda: asyncio.run(ask()) == count, f"{count} calls are held")


def test_a_paused_agents_calls_wait_and_go_on_after_the_resume(
    house: Any, provider: Seen, callers: ThreadPoolExecutor
) -> None:
    base_url = observed(house, provider)
    house.ask("POST", "/v1/agents/bot/pause", {})

    waiting: Future[Any] = callers.submit(call, base_url)
    held(house, 1)
    before = len(provider.calls())
    house.ask("POST", "/v1/agents/bot/resume", {})

    assert 200 == waiting.result()[0]
    assert (0, 1) == (before, len(provider.calls()))


def test_a_call_that_waited_too_long_is_refused_for_good(house: Any, provider: Seen) -> None:
    base_url = observed(house, provider)
    house.set("bot", "pause.hold_s", "0.3")
    house.ask("POST", "/v1/agents/bot/pause", {})

    status, answer = call(base_url)

    assert (403, "instance_paused") == (status, answer["error"]["code"])
    assert [] == provider.calls()


def test_a_stop_refuses_what_waits_and_a_leftover_never_spends_under_the_next_run(
    house: Any, provider: Seen, callers: ThreadPoolExecutor
) -> None:
    first = observed(house, provider)
    house.ask("POST", "/v1/agents/bot/pause", {})
    waiting: Future[Any] = callers.submit(call, first)
    held(house, 1)

    house.stop("bot")
    refused = waiting.result()
    stopped = call(first)
    house.start("bot")
    stale = call(first)

    assert (403, 403, 401) == (refused[0], stopped[0], stale[0])
    assert "instance_stopped" == stopped[1]["error"]["code"]
    assert [] == provider.calls()
    assert 200 == call(address(house))[0]


def test_a_pause_holds_at_the_gateway_that_comes_after_a_killed_one(
    house: Any, provider: Seen, callers: ThreadPoolExecutor
) -> None:
    base_url = observed(house, provider)
    house.ask("POST", "/v1/agents/bot/pause", {})

    house.end_gateway()
    waiting: Future[Any] = callers.submit(call, base_url)
    held(house, 1)
    house.ask("POST", "/v1/agents/bot/resume", {})

    assert 200 == waiting.result()[0]


def test_a_gateway_that_hangs_holds_up_neither_reads_nor_a_stop(house: Any, provider: Seen) -> None:
    observed(house, provider)
    gateway = int(json.loads(house.files.gateway.record.read_bytes())["pid"])
    os.kill(gateway, signal.SIGSTOP)
    try:
        begun_s = time.monotonic()
        house.ask("GET", "/v1/agents")
        stopped = house.stop("bot")
        took_s = time.monotonic() - begun_s
    finally:
        os.kill(gateway, signal.SIGCONT)

    assert "stopped" == stopped["state"]
    assert took_s < 15  # as long as a call of a gateway may take


@pytest.mark.chaos
@pytest.mark.long
def test_a_gateway_that_hangs_is_replaced(house: Any, provider: Seen) -> None:
    base_url = observed(house, provider)
    gateway = int(json.loads(house.files.gateway.record.read_bytes())["pid"])

    os.kill(gateway, signal.SIGSTOP)

    house.until(lambda: house.is_gone(gateway), "it was ended", within_s=90)
    assert 200 == house.until(lambda: call(base_url), "another one answers")[0]
