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
class Provider:
    """A replaying provider in a process of its own; its log is the judge."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def calls(self) -> list[dict[str, Any]]:
        """Every request that it received whole."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [entry for entry in map(json.loads, lines) if entry["event"] == "received"]


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

    def instance(self, name: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.json("agent", "show", name)["instance"]
        return shown

    def wait_state(self, name: str, *states: str) -> dict[str, Any]:
        return eventually(
            lambda: entry if (entry := self.instance(name))["state"] in states else None,
            what=f"{name} in {states}",
        )

    def exchanges(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("agent", "calls", name, "--limit", "100000")["exchanges"]
        return found

    def engine_pid(self) -> int:
        return int(json.loads((self.state / "engine.json").read_text())["pid"])

    def gateway_pid(self) -> int:
        return int(json.loads((self.state / "gateway" / "gateway.json").read_text())["pid"])

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    log = tmp_path / "provider.ndjson"
    command = [
        sys.executable,
        "-m",
        "kt_cli.demo.provider",
        "--fixtures",
        str(REPOSITORY / "fixtures"),
        "--log",
        str(log),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield Provider(process, json.loads(process.stdout.readline())["port"], log)
        process.terminate()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path / "state")
    yield made
    if (made.state / "engine.lock").exists():
        made.run("engine", "start", check=None)
        made.run("engine", "stop", "--all", check=None)
