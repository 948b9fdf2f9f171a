"""One engine, one gateway, one provider and one running agent for all replayed cases."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kt_cli.demo.provider_process import ProviderProcess
from kt_client.link import Link
from kt_ledger.layout import StateLayout

REPOSITORY = Path(__file__).resolve().parents[2]
DEADLINE_S = 30
AGENT = """
import os, pathlib, signal
pathlib.Path("url.tmp").write_text(os.environ["OPENAI_BASE_URL"])
pathlib.Path("url.tmp").rename("url")
signal.pause()
"""
"""Tells where its provider seems to be, and waits: the tests make its calls."""


@dataclass(frozen=True)
class Stage:
    """Everything that a case is replayed on; `origin` is the listener as the agent sees it, token included."""

    origin: str
    layout: StateLayout
    provider: ProviderProcess

    def rows(self) -> list[dict[str, Any]]:
        answer = Link(self.layout.engine_socket).ask("GET", "/v1/agents/replay/exchanges?limit=2000")
        found: list[dict[str, Any]] = answer["exchanges"]
        return found

    def row_of(self, model: str) -> dict[str, Any]:
        """Return the one row of the call that asked for `model`, once it has ended."""
        end = time.monotonic() + DEADLINE_S
        while True:
            rows = [row for row in self.rows() if row["model_asked"] == model]
            if rows and rows[-1]["state"] == "ended":
                (row,) = rows
                return row
            assert time.monotonic() < end, f"no ended row of {model}: {rows}"


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    root = tmp_path_factory.mktemp("replay")
    state = root / "state"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("KT", "HEKMA"))}
    environment["KTESIO_STATE_DIR"] = str(state)

    def kt(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "kt_cli.main", *words],
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return done.stdout

    with ProviderProcess(REPOSITORY / "fixtures", root / "provider.log") as provider:
        try:
            kt(
                "agent",
                "register",
                "replay",
                "--kind",
                "command",
                "--observe",
                "--",
                sys.executable,
                "-c",
                AGENT,
            )
            kt("agent", "config", "set", "replay", "metering.upstream_base_url", provider.url)
            kt("agent", "start", "replay")
            home = Path(json.loads(kt("agent", "show", "replay", "--json"))["instance"]["agent_home"])
            yield Stage(_written(home / "url"), StateLayout(state), provider)
        finally:
            kt("engine", "stop", "--all")


def _written(path: Path) -> str:
    end = time.monotonic() + DEADLINE_S
    while not path.exists():
        assert time.monotonic() < end, f"the agent never wrote {path}"
    return path.read_text().rstrip("/")
