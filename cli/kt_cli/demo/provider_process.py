"""Starts and ends the replaying provider as a process of its own (`kt_cli.demo.provider`)."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from kt_cli.demo import provider_log

END_TIMEOUT_S = 5.0


class ProviderFailed(Exception):
    """The provider process did not come up; the message holds its last words."""


class ProviderProcess:
    """A running provider: its address, its log, and its end. A context manager."""

    def __init__(self, fixtures: Path, log: Path, *, tls: Sequence[Path] = ()) -> None:
        command = [sys.executable, "-m", "kt_cli.demo.provider", "--fixtures", str(fixtures)]
        command += ["--log", str(log), "--until-eof"]
        command += ["--tls", *map(str, tls)] if tls else []
        self.log = log
        self._scheme = "https" if tls else "http"
        # A group of its own: Ctrl-C at the terminal ends it after the agents, not before them.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None and self._process.stderr is not None
        ready = self._process.stdout.readline()
        if not ready:
            self.stop()
            said = self._process.stderr.read().decode(errors="replace").strip()
            raise ProviderFailed(f"got no port from the provider, wanted one; it said: {said[-2000:]}")
        self.port: int = json.loads(ready)["port"]

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def url(self) -> str:
        """The provider's origin, without a path."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def calls(self) -> list[provider_log.ProviderCall]:
        """Return what the provider's log says at this moment."""
        return provider_log.read(self.log)

    def stop(self) -> None:
        """End the process: by the end of its input, then by force; twice is once."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        """Return the provider."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.stop()
