"""A real keeper process, its specification, and a view of its socket and files."""

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kt_ledger import unix_socket
from kt_supervisor import keeper as keeper_package
from kt_supervisor.keeper.spec import Spec

MAIN = Path(keeper_package.__file__).parent / "__main__.py"
DEADLINE_S = 20.0


@dataclass
class Kept:
    """One Run under a keeper."""

    spec: Spec
    process: subprocess.Popen[bytes]
    events: list[dict[str, Any]] = field(default_factory=list)
    connection: socket.socket | None = None
    _rest: bytes = b""

    @property
    def files(self) -> Any:
        return self.spec.files

    def connect(self) -> socket.socket:
        ends = time.monotonic() + DEADLINE_S
        while True:
            peer = socket.socket(socket.AF_UNIX)
            peer.settimeout(DEADLINE_S)
            try:
                unix_socket.connect(peer, self.files.socket)
                return peer
            except OSError:
                peer.close()
                assert time.monotonic() < ends, "no keeper socket"
                assert self.process.poll() is None, "the keeper left"
                select_for(0.01)

    def hello(self) -> dict[str, Any]:
        self.connection = self.connect()
        return self.ask(op="hello", protocol=1)

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.connection
        self.connection.sendall(json.dumps(request).encode() + b"\n")
        return self.read(lambda message: "ok" in message)

    def read(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self.connection
        for message in self.events:
            if wanted(message):
                return message
        while True:
            while b"\n" not in self._rest:
                data = self.connection.recv(65536)
                assert data, "the keeper closed the connection"
                self._rest += data
            line, _, self._rest = self._rest.partition(b"\n")
            message = json.loads(line)
            if "event" in message:
                self.events.append(message)
            if wanted(message):
                return message

    def ready(self) -> None:
        """Wait for the agent's first word."""
        eventually(lambda: self.output() or None, what="output")

    def exited(self) -> dict[str, Any]:
        return self.read(lambda message: message.get("event") == "exited")

    def exit_record(self) -> dict[str, Any]:
        """How it ended, for a keeper that may have left before anybody said hello."""
        assert self.process.wait(DEADLINE_S) == 0
        found: dict[str, Any] = json.loads(self.files.exit.read_text())
        return found

    def running(self) -> dict[str, Any]:
        record = eventually(lambda: self.files.record.exists() or None, what="run.json")
        assert record
        found: dict[str, Any] = json.loads(self.files.record.read_text())
        return found

    def output(self, stream: str = "out") -> bytes:
        return b"".join(path.read_bytes() for path in sorted(self.files.root.glob(f"{stream}-*.log")))


def select_for(seconds: float) -> None:
    """Let a moment pass between two looks at something that has no event."""
    with selectors.DefaultSelector() as nothing:
        nothing.select(seconds)


def eventually[T](look: Callable[[], T | None], *, what: str, deadline_s: float = DEADLINE_S) -> T:
    ends = time.monotonic() + deadline_s
    while time.monotonic() < ends:
        if found := look():
            return found
        select_for(0.01)
    raise AssertionError(f"not within {deadline_s} s: {what}")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Callable[..., Kept]]:
    """Start a keeper on a shell script, a Python program, or a whole argv."""
    started: list[Kept] = []

    def start(script: str = "", *, python: str = "", argv: tuple[str, ...] = (), **options: Any) -> Kept:
        if python:
            argv = (sys.executable, "-S", "-c", python)
        number = len(started) + 1
        env = {
            "PATH": os.environ["PATH"],
            "KEPT_IN": str(tmp_path),
            "KT_RUN": f"run-{tmp_path.name}-{number}",
            **options.pop("env", {}),
        }
        facts: dict[str, Any] = {
            "run_id": env["KT_RUN"],
            "instance_id": "instance",
            "name": "agent",
            "state_dir": str(tmp_path),
            "argv": argv or ("/bin/sh", "-c", script),
            "env": env,
            "cwd": "/",
            **options,
        }
        spec = Spec(**facts)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(MAIN)], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdin
        process.stdin.write(spec.encode())
        process.stdin.close()
        kept = Kept(spec, process)
        started.append(kept)
        return kept

    yield start
    for kept in started:
        if kept.process.poll() is None:
            if kept.files.socket.exists():
                with kept.connect() as last:
                    last.sendall(b'{"op": "stop", "timeout_s": 0}\n{"op": "release"}\n')
            if kept.connection:
                kept.connection.close()
        kept.process.wait(DEADLINE_S)
