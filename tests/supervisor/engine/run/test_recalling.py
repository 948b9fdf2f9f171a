"""The secrets of a Run without the one who started it: a process of the test's own stands for the agent."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.house import House
from tests.provider import Seen

from kt_ledger import unix_socket
from kt_ledger.clock import SystemClock
from kt_ledger.layout import RunLayout, StateLayout
from kt_ledger.records import InstanceRow
from kt_manifest.configuration import config_file
from kt_manifest.contract import kinds
from kt_manifest.contract.snapshot import EnvTarget, Rule
from kt_supervisor.engine.gateway.client import GatewayClient
from kt_supervisor.engine.instance.current_settings import CurrentSettings
from kt_supervisor.engine.run import recalling, run_environment


@pytest.fixture
def row(state: StateLayout) -> InstanceRow:
    state.home("bot").mkdir(parents=True)
    adapter = kinds.command(("true",), interactive=False, observe=False)
    mapped = replace(adapter, mapping=(Rule("model", EnvTarget("MODEL")),))
    return InstanceRow(id="i", name="bot", kind="command", adapter=mapped.to_json(), created_at_ns=1)


@pytest.fixture
def agent(state: StateLayout) -> Iterator[RunLayout]:
    run = state.run("r")
    run.root.mkdir(parents=True)
    variables = {"HEADER": "Bearer told-by-header", "MODEL": "told-by-mapping", "OTHER": "not-a-secret"}
    variables["MY_API_KEY"] = "inherited-by-name"
    child = subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(60)"],
        env=variables,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline()
    run.record.write_text(json.dumps({"agent_pid": child.pid}))
    yield run
    child.kill()
    child.wait()
    child.stdout.close()


def recall(state: StateLayout, row: InstanceRow, run: RunLayout) -> frozenset[str]:
    current = CurrentSettings(state, clock=SystemClock())
    return recalling.recall(state, row, run, lambda: current.of_the_run(row))


def put(state: StateLayout, **settings: Any) -> None:
    for key, value in settings.items():
        config_file.set(Path(state.home("bot")) / "config.toml", key.replace("__", "."), value)


def test_values_are_found_in_the_file_the_settings_and_the_agents_environment(
    state: StateLayout, row: InstanceRow, agent: RunLayout
) -> None:
    put(
        state,
        agent__HEADER="Bearer ${secret:A}",
        model="secret:B",
        agent__FROM_FILE="secret:C",
        agent__OTHER="not-a-secret",
        agent__HIS_API_KEY="clear-by-name",
        metering__upstream_api_key="sk-written-out",
    )
    state.secrets.touch(mode=0o600)
    state.secrets.write_text('C = "told-by-file"\n')

    found = recall(state, row, agent)

    by_name = {"inherited-by-name", "clear-by-name"}
    assert {"told-by-header", "told-by-mapping", "told-by-file", "sk-written-out"} | by_name == found


def test_of_an_agent_that_is_gone_its_kept_variables_are_asked(state: StateLayout, row: InstanceRow) -> None:
    run_environment.store(state, "i", {"MY_API_KEY": "kept-by-name", "OTHER": "not-a-secret"})

    assert {"kept-by-name"} == recall(state, row, state.run("r"))


def test_the_placeholder_of_a_key_is_not_taken_for_the_key(
    state: StateLayout, row: InstanceRow, agent: RunLayout
) -> None:
    put(state, metering__upstream_api_key="secret:GONE")

    assert {"inherited-by-name"} == recall(state, row, agent)


def test_settings_that_make_no_sense_refer_to_nothing(
    state: StateLayout, row: InstanceRow, agent: RunLayout
) -> None:
    (state.home("bot") / "config.toml").write_text("[[[")

    assert frozenset() == recall(state, row, agent)


def test_an_agent_that_is_gone_tells_nothing(state: StateLayout, row: InstanceRow) -> None:
    put(state, agent__HEADER="Bearer ${secret:A}")

    assert frozenset() == recall(state, row, state.run("never"))


KEY = "sk-of-the-shell-alone-31c7"
ECHOES = """
import os, time
while True:
    if os.path.exists("say"):
        print("provider said: no such key", open("say").read(), flush=True)
        os.unlink("say")
    time.sleep(0.02)
"""


def start_with_key(house: House, url: str, *, kept: bool = False) -> None:
    """Start an agent whose provider's key the gateway gets from secrets.toml, or from the caller's shell alone."""
    house.register("bot", ECHOES, observe=True)
    house.set("bot", "metering.upstream_base_url", f"{url}/v1")
    if kept:
        house.files.secrets.touch(mode=0o600)
        house.files.secrets.write_text(f'PROVIDER_KEY = "{KEY}"\n')
    told = {} if kept else {"PROVIDER_KEY": KEY}
    house.set("bot", "metering.upstream_api_key", "secret:PROVIDER_KEY", **told)
    house.start("bot", **told)


def echo(house: House) -> str:
    """Have the agent print what a careless provider says; return the line as it is shown."""
    count = len(house.said("bot"))
    whole = house.files.home("bot") / "whole"
    whole.write_text(KEY)
    whole.rename(whole.with_name("say"))
    house.until(lambda: len(house.said("bot")) > count, "it has printed")
    return str(house.said("bot")[-1]["text"])


def clear_copies(house: House) -> list[str]:
    files = [path for path in house.root.rglob("*") if path.is_file() and path.name != "secrets.toml"]
    return [str(path) for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("kept", [False, True], ids=["only the shell had it", "removed from the file since"])
def test_a_key_that_the_gateway_alone_knows_is_still_overwritten(
    house: House, provider: Seen, kept: bool
) -> None:
    start_with_key(house, provider.url, kept=kept)
    house.files.secrets.unlink(missing_ok=True)
    house.kill_engine()
    house.boot()

    said = echo(house)

    assert f"provider said: no such key {'*' * len(KEY)}" == said
    assert [] == clear_copies(house)


@pytest.mark.long
def test_a_gateway_that_is_silent_meanwhile_is_asked_again(house: House, provider: Seen) -> None:
    start_with_key(house, provider.url)
    gateway = int(house.ask("GET", "/v1/engine")["gateway"]["pid"])
    os.kill(gateway, signal.SIGSTOP)
    try:
        house.kill_engine()
        house.boot()
    finally:
        os.kill(gateway, signal.SIGCONT)

    house.until(lambda: KEY not in echo(house), "the engine knows the key")


def test_a_gateway_of_a_version_that_does_not_know_the_question_leaves_the_key_unknown(
    state: StateLayout,
) -> None:
    """Its web server answers a page that is not there, which is no JSON."""
    state.gateway.root.mkdir()

    async def asked() -> str | None:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        await web.SockSite(runner, unix_socket.bind(state.gateway.admin)).start()
        try:
            async with GatewayClient(state.gateway.admin) as client:
                return await client.key("i")
        finally:
            await runner.cleanup()

    assert asyncio.run(asked()) is None
