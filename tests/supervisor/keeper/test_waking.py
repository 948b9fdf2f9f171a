"""A dead engine comes back, by the keepers, unless it was stopped on purpose."""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_ledger import unix_socket
from kt_supervisor.keeper import proctree

Start = Callable[..., conftest.Run]

FAKE = """
import json, os, socket, sys
state, run = sys.argv[1:]
with open(state + "/started", "a") as file:
    file.write("%d %d %s\\n" % (os.getpid(), os.getsid(0), ",".join(sorted(os.listdir("/proc/self/fd")))))
print("the engine speaks", os.environ.get("ENGINE"), os.getcwd(), flush=True)
if run:
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(run)
    stream.sendall(b'{"op": "hello", "protocol": 1}\\n')
    stream.makefile().readline()
    with open(state + "/greeted", "a") as file:
        file.write("x")
    while stream.recv(4096): pass
"""


class Engines:
    """Fake engines that keepers start; each is reaped and none outlives the test."""

    def __init__(self, state_dir: Path, socket_path: Path | None) -> None:
        self.state_dir = state_dir
        path = "" if socket_path is None else str(socket_path)
        self.command = [sys.executable, "-I", "-S", "-c", FAKE, str(state_dir), path]

    def lines(self) -> list[str]:
        started = self.state_dir / "started"
        return started.read_text().splitlines() if started.exists() else []

    def pids(self) -> list[int]:
        return [int(line.split()[0]) for line in self.lines()]


def reaped(pid: int) -> None:
    """The engine is a child of the keeper's parent, which is this process."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass


def test_an_engine_that_leaves_is_started_again_and_comes_back(start: Start, tmp_path: Path) -> None:
    engines = Engines(tmp_path / "state", tmp_path / "state/runs/run-0/keeper.sock")
    run = start(["/bin/sleep", "1000"], engine_command=engines.command, engine_env={"ENGINE": "of test"})
    run.running()

    run.engine().close()
    conftest.until((tmp_path / "state/greeted").exists)

    pid, session, descriptors = engines.lines()[0].split()
    assert pid == session
    assert set(descriptors.split(",")) == {"0", "1", "2", "3", "4"}  # 3 is the open file, 4 listdir's own
    process = proctree.read(int(pid))
    assert process is not None
    assert process.parent != run.process.pid
    assert run.state.engine_log.read_text() == "the engine speaks of test /\n"
    assert run.state.engine_log.stat().st_mode & 0o777 == 0o600
    assert conftest.alive(run.agent_pid())
    os.kill(int(pid), 9)
    reaped(int(pid))
    conftest.until(lambda: len(engines.lines()) == 2)
    run.state.engine_stopped.touch()
    conftest.until(lambda: (tmp_path / "state/greeted").read_text() == "xx")
    os.kill(engines.pids()[1], 9)
    reaped(engines.pids()[1])


def test_an_engine_is_no_part_of_the_agents_tree(start: Start, tmp_path: Path) -> None:
    engines = Engines(tmp_path / "state", tmp_path / "state/runs/run-0/keeper.sock")
    run = start(["/bin/sleep", "1000"], engine_command=engines.command)
    run.running()
    run.engine().close()
    conftest.until((tmp_path / "state/greeted").exists)
    engine = run.engine()

    engine.ask(op="stop", timeout_s=20)
    record = run.ended(engine)

    assert (record["forced"], record["survivors"]) == (False, [])
    pid = engines.pids()[0]
    assert conftest.alive(pid)
    os.kill(pid, 9)
    reaped(pid)


def test_a_keeper_that_no_engine_ever_greets_starts_one(start: Start, tmp_path: Path) -> None:
    engines = Engines(tmp_path / "state", tmp_path / "state/runs/run-0/keeper.sock")
    start(["/bin/sleep", "1000"], engine_command=engines.command)

    conftest.until((tmp_path / "state/greeted").exists)

    pid = engines.pids()[0]
    os.kill(pid, 9)
    reaped(pid)


def test_an_engine_stopped_on_purpose_stays_stopped(start: Start, tmp_path: Path) -> None:
    engines = Engines(tmp_path / "state", None)
    marked = start(["/bin/sleep", "1000"], engine_command=engines.command)
    other = Engines(tmp_path / "other", None)
    witness = start(["/bin/sleep", "1000"], engine_command=other.command, state_dir=tmp_path / "other")
    marked.state.engine_stopped.touch()
    marked.engine().close()
    witness.engine().close()

    conftest.until(lambda: len(other.lines()) >= 2)  # three delays later, by the same clock

    assert engines.lines() == []
    assert marked.peer().ask(op="status")["phase"] == "running"
    for pid in other.pids():
        reaped(pid)


def test_an_engine_that_answers_on_its_socket_is_not_started_again(start: Start, tmp_path: Path) -> None:
    engines = Engines(tmp_path / "state", None)
    run = start(["/bin/sleep", "1000"], engine_command=engines.command)
    server = unix_socket.bind(run.state.engine_socket)
    server.settimeout(conftest.DEADLINE_S)

    run.engine().close()
    for _ in range(2):
        server.accept()[0].close()

    assert engines.lines() == []
    server.close()
    conftest.until(lambda: len(engines.lines()) == 1)
    reaped(engines.pids()[0])


def test_while_another_keeper_wakes_the_engine_this_one_waits(start: Start, tmp_path: Path) -> None:
    engines = Engines(tmp_path / "state", None)
    run = start(["/bin/sleep", "1000"], engine_command=engines.command)
    run.running()
    with run.state.engine_waking.open("wb") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        witness = start(["/bin/sleep", "1000"], engine_command=["/bin/false"], state_dir=tmp_path / "other")
        run.engine().close()
        witness.engine().close()
        conftest.until(lambda: witness.files.keeper_log.read_text().count("the engine is gone") >= 2)
        assert engines.lines() == []

    conftest.until(lambda: len(engines.lines()) == 1)
    reaped(engines.pids()[0])


def test_where_the_kernel_makes_no_siblings_the_engine_is_an_orphan(tmp_path: Path) -> None:
    """The way of macOS, walked here by a subreaper: the engine goes to its parent's reaper, and no zombie stays."""
    code = (
        "import os, sys\n"
        "from kt_supervisor.keeper import specification, system, waking\n"
        "fields = dict.fromkeys(('run_id', 'instance_id', 'name', 'cwd'), 'x')\n"
        "fields |= dict(protocol=1, state_dir=sys.argv[1], argv=['x'], env={}, engine_env={})\n"
        "fields |= dict(engine_command=sys.argv[2:])\n"
        "system.become_subreaper(True)\n"
        "waking._start_orphan(specification.Specification(fields))\n"
        "try: print(os.waitpid(-1, os.WNOHANG))\n"
        "except ChildProcessError: print('childless')\n"
    )
    paths = os.pathsep.join(str(conftest.REPOSITORY / room) for room in ("supervisor", "ledger"))
    engine = ["/bin/sh", "-c", f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid"]

    ended = subprocess.run(
        [sys.executable, "-S", "-c", code, str(tmp_path), *engine],
        env={"PYTHONPATH": paths, "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )

    assert ended.stdout == b"childless\n"
    conftest.until((tmp_path / "pid").exists)


@pytest.mark.parametrize("command", [["/no/such/engine"], ["/etc/passwd"]])
def test_an_engine_that_cannot_be_started_is_noted_and_tried_again(
    start: Start, tmp_path: Path, command: list[str]
) -> None:
    run = start(["/bin/sleep", "1000"], engine_command=command)
    run.running()

    run.engine().close()
    conftest.until(
        lambda: run.state.engine_log.exists() and len(run.state.engine_log.read_text().splitlines()) >= 2
    )

    assert f"the engine ['{command[0]}'] could not be started" in run.state.engine_log.read_text()
    assert run.peer().ask(op="status")["phase"] == "running"


def test_once_the_exit_is_on_disk_no_engine_is_woken_and_the_keeper_leaves(
    start: Start, tmp_path: Path
) -> None:
    engines = Engines(tmp_path / "state", None)
    run = start(["/bin/true"], engine_command=engines.command)
    engine = run.engine()
    run.ended(engine)

    engine.close()

    assert run.process.wait(conftest.DEADLINE_S) == 0
    assert run.files.exit.exists()
    assert not run.files.socket.exists()
    assert engines.lines() == []


def test_an_exit_that_nobody_asks_for_lets_the_keeper_leave_after_five_seconds(start: Start) -> None:
    run = start(["/bin/true"])

    assert run.process.wait(conftest.DEADLINE_S) == 0
    assert run.files.exit.exists()


def test_six_keepers_start_few_engines(start: Start, tmp_path: Path) -> None:
    engines = Engines(tmp_path / "state", None)
    runs = [start(["/bin/sleep", "1000"], engine_command=engines.command) for _ in range(6)]
    connections = [run.engine() for run in runs]
    server = socket.socket(socket.AF_UNIX)

    for connection in connections:
        connection.close()
    conftest.until(lambda: len(engines.lines()) >= 1)
    server.bind(str(runs[0].state.engine_socket))  # the engine that was started opens its socket
    server.listen()
    server.settimeout(conftest.DEADLINE_S)
    for _ in runs[1:]:
        server.accept()[0].close()

    assert len(engines.lines()) <= 3
    server.close()
    runs[0].state.engine_stopped.touch()
    for pid in engines.pids():
        reaped(pid)
