"""From borrowing to exit: what is recorded is exactly what happened."""

import json
import os
import select
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import life

Start = Callable[..., conftest.Run]


@pytest.mark.parametrize("code", [0, 1, 2, 7, 126, 127, 128, 137, 255])
def test_the_exit_code_is_the_agents_own(start: Start, code: int) -> None:
    record = start(["/bin/sh", "-c", f"exit {code}"]).ended()

    assert (record["code"], record["signal"], record["spawn_error"]) == (code, None, None)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGPIPE, signal.SIGUSR1]
)
def test_the_signal_is_the_one_that_ended_it(start: Start, number: signal.Signals) -> None:
    record = start(["/bin/sh", "-c", f"ulimit -c 0; kill -{number.value} $$"]).ended()

    assert (record["code"], record["signal"]) == (None, number)


def test_an_exit_is_remembered_until_it_is_released(start: Start) -> None:
    run = start(["/bin/sh", "-c", "exit 9"])
    engine = run.engine()
    record = run.ended(engine)

    late = run.engine()

    assert run.hello["exit"] == record
    assert late.event("exited")["code"] == 9
    assert run.release() == 0
    assert not run.files.socket.exists()
    assert not run.files.stdin.exists()


def test_a_killed_keeper_ends_no_agent_and_a_stop_needs_another_hand(
    start: Start, doomed: Callable[[int], int]
) -> None:
    """Observed: the agent lives on under init, keeps lock and stdin, and gets EPIPE when it next writes."""
    code = (
        "import os, sys, signal\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
        "print('ready', flush=True)\n"
        "line = sys.stdin.readline()\n"
        "try: print(line, flush=True)\n"
        "except OSError as error: open(sys.argv[1], 'w').write(error.__class__.__name__)\n"
        "os._exit(0)\n"
    )
    run = start([*conftest.python(code), "state/verdict"], interactive=True)
    run.said(b"ready\n")
    agent = doomed(run.agent_pid())
    writer = os.open(run.files.stdin, os.O_RDWR)

    run.process.kill()
    run.process.wait()

    assert conftest.alive(agent)
    os.write(writer, b"go\n")
    verdict = run.state.root / "verdict"
    conftest.until(lambda: verdict.exists() and verdict.read_text())
    assert verdict.read_text() == "BrokenPipeError"
    assert run.output() == b"ready\n"
    assert not run.files.exit.exists()
    os.close(writer)


def test_whoever_holds_the_spare_ends_saves_the_agent_of_a_killed_keeper_from_a_broken_pipe(
    start: Start, doomed: Callable[[int], int]
) -> None:
    run = start(["/bin/sh", "-c", "echo ready; read x; echo $x"], interactive=True)
    run.said(b"ready\n")
    doomed(run.agent_pid())
    writer = os.open(run.files.stdin, os.O_RDWR)
    peer = run.peer()
    peer.stream.sendall(b'{"op": "spares"}\n')
    answer, spares, _, _ = socket.recv_fds(peer.stream, 4096, 4)
    assert json.loads(answer) == {"ok": True, "streams": ["out", "err"]}

    run.process.kill()
    run.process.wait()
    os.write(writer, b"still heard\n")

    select.select([spares[0]], [], [], conftest.DEADLINE_S)
    assert os.read(spares[0], 100) == b"still heard\n"
    for descriptor in (writer, *spares):
        os.close(descriptor)


def test_a_deleted_folder_ends_in_no_record_and_no_keeper_for_ever(start: Start) -> None:
    run = start(["/bin/sh", "-c", "read x; exit 3"], interactive=True)
    engine = run.engine()
    run.running()
    writer = os.open(run.files.stdin, os.O_RDWR)

    shutil.rmtree(run.files.root)
    os.write(writer, b"\n")

    assert engine.event("exited")["code"] == 3
    engine.close()
    for peer in run.peers:
        peer.close()
    assert run.process.wait(conftest.DEADLINE_S) == 0
    os.close(writer)


def test_zombies_of_the_agents_orphans_do_not_pile_up(start: Start) -> None:
    code = (
        "import os, sys\n"
        "for _ in range(50):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        if os.fork(): os._exit(0)\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    run = start(conftest.python(code), interactive=True)
    run.said(b"ready\n")
    children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children")

    conftest.until(lambda: len(children.read_text().split()) == 1)

    assert conftest.alive(run.agent_pid())


def test_ten_short_runs_side_by_side_end_exactly(start: Start) -> None:
    runs = [start(["/bin/sh", "-c", f"echo {n}; exit {n}"]) for n in range(10)]

    records = [run.ended() for run in runs]

    assert [record["code"] for record in records] == list(range(10))
    assert [run.output() for run in runs] == [f"{n}\n".encode() for n in range(10)]


def test_every_phase_can_be_stopped_and_leads_to_the_end() -> None:
    for phase in (life.BORROWING, life.SPAWNING, life.RUNNING):
        assert life.TABLE[phase, "stop"] == life.STOPPING
    assert life.TABLE[life.STOPPING, "recorded"] == life.EXITED
    assert {phase for phase, _ in life.TABLE} == {life.BORROWING, life.SPAWNING, life.RUNNING, life.STOPPING}
