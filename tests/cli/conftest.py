"""A replaying provider in a process of its own, and the `kt` command as users run it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kt_cli.demo.provider_process import ProviderProcess

REPOSITORY = Path(__file__).resolve().parents[2]
ANSWER_TIMEOUT_S = 60


@dataclass(frozen=True)
class Done:
    """How one command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Kt:
    """The command with a state directory of its own."""

    state: Path

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("KT", "HEKMA"))}
        return {**inherited, "KTESIO_STATE_DIR": str(self.state), **more}

    def __call__(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Done:
        done = subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            timeout=ANSWER_TIMEOUT_S,
            env=self.environment(**(env or {})),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "kt_cli.main", *words]


@pytest.fixture
def kt(tmp_path: Path) -> Iterator[Kt]:
    """The command over a fresh state directory; whatever it started has ended afterwards."""
    command = Kt(tmp_path / "state")
    yield command
    if command.state.exists():
        command("engine", "stop", "--all")


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[ProviderProcess]:
    with ProviderProcess(REPOSITORY / "fixtures", tmp_path / "provider.log") as running:
        yield running
