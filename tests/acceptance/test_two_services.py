"""Supervisor and gateway as two services, as compose.yaml starts them: here as two plain processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kt_cli.demo.provider_process import ProviderProcess

CALLER = str(Path(__file__).parent / "agents" / "plain_caller.py")
FIRST = ["gateway", "supervisor"] if "KT_CHAOS" in os.environ else ["gateway"]
"""The other order is that of the service which is restarted, below."""
Service = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def service(fleet: Any) -> Iterator[Service]:
    """Start one of our processes as a service manager would: in the foreground, with nobody else starting it."""
    started: list[subprocess.Popen[bytes]] = []
    fleet.env["KT_GATEWAY"] = "external"
    fleet.state.mkdir(mode=0o700)

    def start(*module: str) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "KT_GATEWAY": "external", "KTESIO_STATE_DIR": str(fleet.state)}
        process = subprocess.Popen(
            [sys.executable, "-m", *module], env=environment, stderr=subprocess.DEVNULL
        )
        started.append(process)
        return process

    yield start
    fleet.run("engine", "stop", "--all", check=None)
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(30)


@pytest.mark.parametrize("first", FIRST)
def test_the_engine_adopts_a_gateway_that_it_did_not_start(
    fleet: Any, provider: ProviderProcess, service: Service, eventually: Any, first: str
) -> None:
    commands = {
        "gateway": ("kt_addons", "--state-dir", str(fleet.state)),
        "supervisor": ("kt_cli.main", "engine", "run"),
    }
    order = [first, *(name for name in commands if name != first)]

    processes = {name: service(*commands[name]) for name in order}
    status = eventually(
        lambda: status if (status := fleet.engine()) and status.get("gateway") else None,
        what="an engine with a gateway",
    )
    fleet.observe("opaque", provider, CALLER, "--linger-s", "0.6", "plain-json", "stream-not-asked!")
    ended = fleet.wait_state("opaque", "stopped", "failed")

    assert processes["gateway"].pid == status["gateway"]["pid"]
    assert processes["supervisor"].pid == status["pid"]
    assert 0 == ended["exit"]["code"]
    assert ["exact", "exact"] == [row["completeness"] for row in fleet.exchanges("opaque")]


@pytest.mark.chaos
@pytest.mark.long
def test_a_gateway_service_that_is_restarted_is_adopted_again(
    fleet: Any, provider: ProviderProcess, service: Service, eventually: Any
) -> None:
    supervisor = service("kt_cli.main", "engine", "run")
    gateway = service("kt_addons", "--state-dir", str(fleet.state))
    eventually(lambda: (fleet.state / "engine.sock").exists(), what="an engine")
    fleet.observe("opaque", provider, CALLER, "--repeat", "40", "stream-not-asked!")

    gateway.kill()
    gateway.wait(30)
    again = service("kt_addons", "--state-dir", str(fleet.state))
    ended = fleet.wait_state("opaque", "stopped", "failed")

    assert 0 == ended["exit"]["code"]
    assert supervisor.poll() is None
    assert again.pid == fleet.engine()["gateway"]["pid"]
    called = {call.model for call in provider.calls()}
    assert called <= {row["model_asked"] for row in fleet.exchanges("opaque")}
