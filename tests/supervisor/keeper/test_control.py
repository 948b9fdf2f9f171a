"""Whatever comes over the socket, the keeper answers in bounds or hangs up, and the agent never notices."""

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest, test_listener

from kt_supervisor.keeper import control

Start = Callable[..., conftest.Run]


@pytest.fixture
def run(start: Start) -> conftest.Run:
    run = start(["/bin/sleep", "1000"])
    run.running()
    run.engine()
    return run


def running(run: conftest.Run) -> bool:
    return bool(run.peer().ask(op="status")["phase"] == "running")


def test_status_names_everybody(run: conftest.Run) -> None:
    answer = run.peer().ask(op="status")

    assert answer == {
        "ok": True,
        "protocol": 1,
        "run_id": "run-0",
        "instance_id": "instance-1",
        "keeper_pid": run.process.pid,
        "agent_pid": run.agent_pid(),
        "phase": "running",
        "paused": False,
        "disk_low": False,
        "stdin": "none",
    }


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"\xff\xfe\x00\n",
        b"[]\n",
        b"{}\n",
        b'{"op": 3}\n',
        b"\n",
        b"[" * 50_000 + b"\n",
        b"x" * (control.MAX_LINE_BYTES + 20_000),
    ],
    ids=["garbage", "binary", "list", "no op", "number", "empty", "deep", "endless"],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(run: conftest.Run, line: bytes) -> None:
    peer = run.peer()

    peer.stream.sendall(line)

    assert peer.line()["ok"] is False
    assert peer.closed()
    assert running(run)


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "dance"},
        {"op": "hello", "protocol": 2},
        {"op": "hello"},
        {"op": "release"},
        {"op": "stop", "timeout_s": -1},
        {"op": "stop", "timeout_s": "1"},
        {"op": "stop", "timeout_s": True},
        {"op": "stop", "timeout_s": float("nan")},
        {"op": "stop", "timeout_s": float("inf")},
    ],
    ids=str,
)
def test_a_request_that_cannot_be_met_is_answered_with_got_and_wanted(
    run: conftest.Run, request_: dict[str, object]
) -> None:
    peer = run.peer()

    answer = peer.ask(**request_)

    assert answer["ok"] is False
    assert "wanted" in answer["error"]
    assert peer.ask(op="status")["phase"] == "running"


def test_a_request_may_come_in_pieces_and_several_at_once(run: conftest.Run) -> None:
    peer = run.peer()

    for piece in (b'{"op": "st', b'atus"}\n{"op"', b': "status"}\n{"op": "status"}\n'):
        peer.stream.sendall(piece)

    assert [peer.line()["ok"] for _ in range(3)] == [True] * 3


def test_half_a_line_and_a_hang_up_are_nothing(run: conftest.Run) -> None:
    for data in (b"", b'{"op": "stop", "timeout_s": 0}'):
        peer = run.peer()
        peer.stream.sendall(data)
        peer.close()

    assert running(run)


def test_more_connections_than_allowed_are_hung_up_on_and_later_ones_served(run: conftest.Run) -> None:
    before = len(run.peers)
    peers = [run.peer() for _ in range(control.MAX_CONNECTIONS + 10)]
    outcomes = []
    for peer in peers:
        try:
            outcomes.append(peer.ask(op="status")["ok"])
        except (AssertionError, OSError):
            outcomes.append(False)

    for peer in peers:
        peer.close()

    assert outcomes.count(True) == control.MAX_CONNECTIONS - before
    conftest.until(lambda: answered(run))


def answered(run: conftest.Run) -> bool:
    try:
        return running(run)
    except (AssertionError, OSError):
        return False


def test_a_peer_that_asks_for_ever_and_never_reads_is_only_slowed(run: conftest.Run) -> None:
    peer = run.peer()
    peer.stream.setblocking(False)
    sent = 0

    try:
        while sent < 50_000_000:
            sent += peer.stream.send(b'{"op": "status"}\n' * 1000)
    except BlockingIOError:
        pass

    assert sent < 5_000_000
    assert running(run)


def test_an_engine_that_does_not_read_neither_slows_the_agent_nor_misses_the_exit(start: Start) -> None:
    run = start(conftest.python("import os\nfor n in range(3000): os.write(1, b'x' * 10_000)"))
    idle = run.engine()
    reading = run.engine()

    record = run.ended(reading)

    assert record["out"]["segment"] == 2
    assert len(run.output()) == 30_000_000
    assert idle.event("exited")["code"] == 0


def test_output_events_come_and_are_few(start: Start) -> None:
    run = start(
        ["/bin/sh", "-c", "read x; i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done"],
        interactive=True,
    )
    engine = run.engine()
    with run.files.stdin.open("wb", buffering=0) as writer:
        writer.write(b"\n")

    events = []
    while not events or events[-1] != "exited":
        events.append(engine.line().get("event"))

    assert 1 <= events.count("output") < 200
    assert run.output().endswith(b"1999\n")


def test_started_is_told_to_an_engine_that_came_before(start: Start, tmp_path: Path) -> None:
    gateway = test_listener.Gateway(tmp_path / "lend.sock")
    run = start(["/bin/sleep", "1000"], lend_from=str(gateway.path))
    engine = run.engine()

    gateway.serve()

    assert engine.event("started") == {"event": "started"}
    assert engine.ask(op="status")["phase"] == "running"
    gateway.die()


def test_the_socket_is_for_this_user_alone(run: conftest.Run) -> None:
    assert run.files.socket.stat().st_mode & 0o777 == 0o600
    if os.getuid():
        pytest.skip("speaking as another user takes root")
    # Another user whom a careless chmod let through is still refused, by SO_PEERCRED.
    run.files.socket.chmod(0o666)
    run.files.root.chmod(0o711)
    code = (
        "import os, socket, sys\n"
        "os.setuid(65534)\n"
        "peer = socket.socket(socket.AF_UNIX)\n"
        "peer.connect('keeper.sock')\n"
        "try:\n"
        '    peer.sendall(b\'{"op": "status"}\\n\')\n'
        "    sys.stdout.buffer.write(peer.recv(100))\n"
        "except (BrokenPipeError, ConnectionResetError):\n"
        "    pass\n"
    )
    ended = subprocess.run(
        conftest.python(code),
        cwd=run.files.root,
        capture_output=True,
        check=False,
        timeout=conftest.DEADLINE_S,
    )

    assert ended.stderr == b""
    assert ended.stdout == b""


def test_descriptors_running_out_delays_peers_and_nothing_else(start: Start, tmp_path: Path) -> None:
    import resource

    run = start(["/bin/sh", "-c", "read x; echo $x"], interactive=True)
    run.running()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(run.process.pid, resource.RLIMIT_NOFILE, (32, hard))
    peers = []
    for _ in range(40):
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(str(run.files.socket))
        peers.append(stream)

    with run.files.stdin.open("wb", buffering=0) as writer:
        writer.write(b"still here\n")
    run.said(b"still here\n")
    for stream in peers:
        stream.close()

    record = run.ended()
    assert record["code"] == 0
    assert json.loads(run.files.exit.read_bytes()) == record
