"""The whole product, driven as its users drive it: the `kt` command, real agents, a provider with a log of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kt_cli.demo.provider_process import ProviderProcess
from kt_client.errors import EngineAway, KtError
from kt_client.link import Link

REPOSITORY = Path(__file__).resolve().parents[2]
AGENTS = Path(__file__).resolve().parent / "agents"
DEADLINE_S = 60.0


def eventually[T](look: Callable[[], T | None], *, what: str, deadline_s: float = DEADLINE_S) -> T:
    """Return the first true answer of `look`; the only waiting there is, and it looks at the thing itself."""
    ends = time.monotonic() + deadline_s
    while time.monotonic() < ends:
        if found := look():
            return found
        time.sleep(0.02)  # pause: between two looks at something that has no event to wait for
    raise AssertionError(f"not within {deadline_s} s: {what}")


@dataclass
class Fleet:
    """One state directory and the command that works on it."""

    state: Path
    env: dict[str, str] = field(default_factory=dict)

    def run(
        self, *words: str, check: int | None = 0, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **self.env, **(env or {}), "KTESIO_STATE_DIR": str(self.state)}
        command = [sys.executable, "-m", "kt_cli.main", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=120
        )
        if check is not None:
            assert check == done.returncode, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)

    @property
    def link(self) -> Link:
        return Link(self.state / "engine.sock")

    def instance(self, name: str) -> dict[str, Any]:
        """Return what there is to know of an agent; asked without a command, which would cost a fifth of a second."""
        shown: dict[str, Any] = self.link.ask("GET", f"/v1/agents/{name}")["instance"]
        return shown

    def usage(self, name: str) -> dict[str, Any]:
        used: dict[str, Any] = self.link.ask("GET", f"/v1/agents/{name}/usage")["usage"]
        return used

    def engine(self) -> dict[str, Any] | None:
        """Return the engine's status; None where none answers."""
        try:
            status: dict[str, Any] = self.link.ask("GET", "/v1/engine", timeout_s=5)
        except (EngineAway, KtError):
            return None
        return status

    def wait_state(self, name: str, *states: str) -> dict[str, Any]:
        return eventually(
            lambda: entry if (entry := self.instance(name))["state"] in states else None,
            what=f"{name} in {states}",
        )

    def exchanges(self, name: str) -> list[dict[str, Any]]:
        answer = self.link.ask("GET", f"/v1/agents/{name}/exchanges?limit=100000")
        found: list[dict[str, Any]] = answer["exchanges"]
        return found

    def observe(
        self, name: str, provider: ProviderProcess, *command: str, env: dict[str, str] | None = None
    ) -> None:
        """Register an opaque agent whose traffic passes our listener, and start it."""
        self.run("agent", "register", name, "--kind", "command", "--observe", "--", sys.executable, *command)
        self.run("agent", "config", "set", name, "metering.upstream_base_url", f"{provider.url}/v1")
        self.run("agent", "start", name, env=env)

    def engine_pid(self) -> int:
        return int(json.loads((self.state / "engine.json").read_text())["pid"])

    def gateway_pid(self) -> int:
        return int(json.loads((self.state / "gateway" / "gateway.json").read_text())["pid"])

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[..., Any]:
    """Wait for something to become true."""
    return eventually


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[ProviderProcess]:
    """The provider in a process of its own; its log is the judge."""
    with ProviderProcess(REPOSITORY / "fixtures", tmp_path / "provider.ndjson") as running:
        yield running


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path / "state")
    yield made
    if (made.state / "engine.lock").exists():
        if made.engine() is None:
            made.run("engine", "start", check=None)
        made.run("engine", "stop", "--all", check=None)
