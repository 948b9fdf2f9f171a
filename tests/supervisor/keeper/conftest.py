"""Real keepers with real agents, each in a state directory of its own, and nothing left behind."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kt_ledger import layout, unix_socket
from kt_supervisor.keeper import proctree, specification

DEADLINE_S = 40.0
REPOSITORY = Path(__file__).parents[3]
MAIN = REPOSITORY / "supervisor" / "kt_supervisor" / "keeper" / "__main__.py"


def until(claim: Callable[[], object], *, deadline_s: float = DEADLINE_S) -> None:
    """Return once `claim()` is true; fail when it is not in time."""
    end_s = time.monotonic() + deadline_s
    while not claim():
        assert time.monotonic() < end_s, f"not in {deadline_s} s: {claim}"
        select.select([], [], [], 0.005)


class Peer:
    """A connection to a keeper."""

    def __init__(self, path: Path) -> None:
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.settimeout(DEADLINE_S)
        unix_socket.connect(self.stream, path)
        self._lines = self.stream.makefile("rb")

    def ask(self, **request: object) -> dict[str, Any]:
        """Return the answer; events that come before it are dropped."""
        self.stream.sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = self.line()
            if "event" not in answer:
                return answer

    def line(self) -> dict[str, Any]:
        line = self._lines.readline()
        assert line, "the keeper closed the connection"
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def spares(self) -> dict[str, int]:
        """Return the read ends of the agent's streams, by name; the caller's to close."""
        self.stream.sendall(b'{"op": "spares"}\n')
        data, descriptors, _, _ = socket.recv_fds(self.stream, 4096, 4)
        return dict(zip(json.loads(data)["streams"], descriptors, strict=True))

    def event(self, name: str) -> dict[str, Any]:
        while True:
            answer = self.line()
            if answer.get("event") == name:
                return answer

    def closed(self) -> bool:
        try:
            while self._lines.readline():
                pass
        except ConnectionResetError:
            pass
        return True

    def close(self) -> None:
        self._lines.close()
        self.stream.close()


class Run:
    """One keeper and what a test asks of it."""

    def __init__(self, state_dir: Path, run_id: str, process: subprocess.Popen[bytes]) -> None:
        self.state = layout.StateLayout(state_dir)
        self.files = self.state.run(run_id)
        self.process = process
        self.peers: list[Peer] = []

    def peer(self) -> Peer:
        until(lambda: self.files.socket.exists() or self.process.poll() is not None)
        peer = Peer(self.files.socket)
        self.peers.append(peer)
        return peer

    def engine(self) -> Peer:
        peer = self.peer()
        self.hello = peer.ask(op="hello", protocol=1)
        assert self.hello["ok"] is True
        return peer

    def ended(self, engine: Peer | None = None) -> dict[str, Any]:
        """Wait for the exit, and return its record."""
        event = (engine or self.engine()).event("exited")
        record = json.loads(self.files.exit.read_bytes())
        assert {"event": "exited", **record} == event
        assert isinstance(record, dict)
        return record

    def output(self, stream: str = "out") -> bytes:
        return b"".join(path.read_bytes() for path in sorted(self.files.root.glob(f"{stream}-*.log")))

    def said(self, words: bytes) -> bytes:
        until(lambda: words in self.output())
        return self.output()

    def agent_pid(self) -> int:
        until(lambda: self.files.record.exists())
        return int(json.loads(self.files.record.read_bytes())["agent_pid"])

    def running(self) -> int:
        """Wait until the agent was exec'd, and return its pid."""
        peer = self.peer()
        until(lambda: peer.ask(op="status")["phase"] == "running")
        return self.agent_pid()

    def release(self) -> int:
        """Let the keeper go, and return its exit status."""
        self.peer().ask(op="release")
        return self.process.wait(DEADLINE_S)

    def end(self) -> None:
        for peer in self.peers:
            peer.close()
        if self.process.poll() is None and self.files.socket.exists():
            try:
                peer = Peer(self.files.socket)
                peer.ask(op="hello", protocol=1)
                peer.ask(op="stop", timeout_s=0)
                if not self.files.exit.exists():
                    peer.event("exited")
                peer.ask(op="release")
            except (OSError, AssertionError, ValueError):
                self.process.kill()
        else:
            self.process.kill()
        self.process.wait(DEADLINE_S)


def alive(pid: int) -> bool:
    process = proctree.read(pid)
    return process is not None and process.alive()


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start a keeper: `start(argv, **fields of the specification)`."""
    runs: list[Run] = []

    def begin(argv: list[str], **fields: Any) -> Run:
        run_id = fields.pop("run_id", f"run-{len(runs)}")
        state_dir = fields.pop("state_dir", tmp_path / "state")
        main = fields.pop("main", MAIN)
        inherited = fields.pop("pass_fds", ())
        (state_dir / "runs" / run_id).mkdir(mode=0o700, parents=True, exist_ok=True)
        wanted = {
            "instance_id": "instance-1",
            "name": "agent",
            "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            "cwd": str(tmp_path),
            "engine_command": ["/bin/false"],
            "engine_env": {},
        } | fields
        data = specification.build(run_id=run_id, state_dir=str(state_dir), argv=argv, **wanted)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(main)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            pass_fds=inherited,
        )
        run = Run(state_dir, run_id, process)
        runs.append(run)
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.close()
        return run

    yield begin
    for run in runs:
        run.end()
        if run.process.stderr is not None:
            run.process.stderr.close()


@pytest.fixture
def doomed() -> Iterator[Callable[[int], int]]:
    """Name a process that must not outlive the test; the test knows that it is its own."""
    pids: list[int] = []

    def name(pid: int) -> int:
        pids.append(pid)
        return pid

    yield name
    for pid in pids:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def cgroup_parent() -> Iterator[Path]:
    """Make a cgroup (v2) to work in, where root may; ask for it before `start`, so that it goes last."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    parent = roots[0] / f"kt-test-{os.getpid()}" if roots else Path("/nowhere/kt")
    try:
        parent.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup v2 can be made here: {error}")
    yield parent
    until(lambda: not list(parent.glob("kt-*")))
    parent.rmdir()
