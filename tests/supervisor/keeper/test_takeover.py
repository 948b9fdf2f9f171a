"""An agent whose keeper was killed gets another one and does not notice."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import cgroup, loop, proctree, specification, takeover

Start = Callable[..., conftest.Run]
Doomed = Callable[[int], int]

KILLS = 40 if "KT_CHAOS" in os.environ else 3
FLOOD = (
    "import os\nn = 0\nwhile True:\n    os.write(1, b''.join(b'%9d\\n' % i for i in range(n, n + 1000)))\n"
)
FLOOD += "    n += 1000\n"
COUNT = "import os, time\nn = 0\nwhile True:\n    os.write(1, b'%9d\\n' % n)\n    n += 1\n    time.sleep(0.0005)\n"


def mark(run_id: str) -> dict[str, str]:
    # One per worker: whoever carries it belongs to the agent.
    return {"PATH": os.environ["PATH"], "KT_RUN": f"{run_id}-{os.getpid()}"}


def killed(run: conftest.Run) -> None:
    run.process.kill()
    run.process.wait(conftest.DEADLINE_S)


def successor(start: Start, run: conftest.Run, run_id: str = "run-0", **fields: Any) -> conftest.Run:
    record = json.loads(run.files.record.read_bytes())
    wanted = {
        "agent_pid": record["agent_pid"],
        "agent_start_ticks": record["agent_start_ticks"],
        **fields.pop("given", {}),
    }
    fields.setdefault("env", mark(run_id))
    given = [wanted[name] for name in ("out", "err", "pidfd") if wanted.get(name) is not None]
    found = start(["/never"], run_id=run_id, takeover=wanted, pass_fds=tuple(given), **fields)
    conftest.until(
        lambda: (
            found.process.poll() is not None
            or json.loads(run.files.record.read_bytes())["keeper_pid"] == found.process.pid
            or found.files.exit.exists()
        )
    )
    return found


def written(run: conftest.Run) -> int:
    return sum(path.stat().st_size for path in run.files.root.glob("out-*.log"))


def grown(run: conftest.Run, by_bytes: int) -> None:
    seen = written(run)
    conftest.until(lambda: written(run) > seen + by_bytes)


def knows_exits() -> bool:
    """Whether this kernel tells how another's child ended (Linux 6.15)."""
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    return (major, minor) >= (6, 15)


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("talk", "segment_limit_bytes"), [(COUNT, 20_000), (FLOOD, 3_000_000)], ids=["trickle", "flood"]
)
def test_no_byte_is_lost_or_repeated_however_often_the_keeper_is_killed(
    start: Start, doomed: Doomed, talk: str, segment_limit_bytes: int
) -> None:
    run = start(conftest.python(talk), segment_limit_bytes=segment_limit_bytes)
    doomed(run.running())
    spares = run.engine().spares()
    for _ in range(KILLS):
        grown(run, 5000)
        killed(run)
        run = successor(start, run, given=spares, segment_limit_bytes=segment_limit_bytes)
    for spare in spares.values():
        os.close(spare)

    engine = run.engine()
    grown(run, 5000)
    engine.ask(op="stop", timeout_s=20)
    record = run.ended(engine)

    whole = run.output().rpartition(b"\n")[0]  # a signal may cut the last write short
    numbers = [int(line) for line in whole.splitlines()]
    assert numbers == list(range(len(numbers)))
    assert (record["survivors"], record["gaps"]) == ([], [])
    assert json.loads(run.files.record.read_bytes())["takeovers"] == KILLS
    if knows_exits():
        assert (record["signal"], record["code_unknown"]) == (signal.SIGTERM, None)


def test_pipes_that_nobody_held_are_opened_again_with_what_is_in_them(start: Start, doomed: Doomed) -> None:
    # It writes while its keeper is stopped, so that the pipe is not empty when that dies.
    talker = "import os, signal\nsignal.signal(10, lambda *_: os.write(1, b'two '))\n"
    talker += "signal.signal(12, lambda *_: os.write(1, b'three'))\nos.write(1, b'one ')\n"
    talker += "while True: signal.pause()\n"
    run = start(conftest.python(talker))
    pid = doomed(run.running())
    run.said(b"one ")
    run.process.send_signal(signal.SIGSTOP)
    conftest.until(lambda: (process := proctree.read(run.process.pid)) is not None and process.stopped())
    reader = os.open(f"/proc/{pid}/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    os.kill(pid, signal.SIGUSR1)
    conftest.until(lambda: waiting(reader) == 4)
    killed(run)
    os.close(reader)

    run = successor(start, run)
    os.kill(pid, signal.SIGUSR2)

    assert run.said(b"three") == b"one two three"
    engine = run.engine()
    engine.ask(op="stop", timeout_s=20)
    gaps = run.ended(engine)["gaps"]
    assert [gap.partition(":")[0] for gap in gaps] == ["out", "err"]
    assert all("EPIPE" in gap for gap in gaps)


def waiting(pipe: int) -> int:
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), "little")


@pytest.mark.parametrize(("ending", "code", "number"), [("exit 7", 7, None), ("kill -9 $$", None, 9)])
def test_the_end_of_an_agent_that_is_nobodys_child_is_known(
    start: Start, doomed: Doomed, ending: str, code: int | None, number: int | None
) -> None:
    if not knows_exits():
        pytest.skip("needs PIDFD_INFO_EXIT, Linux 6.15")
    run = start(["/bin/sh", "-c", f"read line; {ending}"], interactive=True, env=mark("run-0"))
    doomed(run.running())
    writer = os.open(run.files.stdin, os.O_WRONLY | os.O_NONBLOCK)
    killed(run)
    run = successor(start, run, interactive=True)
    engine = run.engine()
    assert engine.ask(op="status")["stdin"] == "open"

    os.write(writer, b"go\n")
    record = run.ended(engine)

    os.close(writer)
    assert (record["code"], record["signal"], record["code_unknown"]) == (code, number, None)


def test_an_end_between_two_keepers_is_known_to_whoever_held_a_pidfd(start: Start) -> None:
    if not knows_exits():
        pytest.skip("needs PIDFD_INFO_EXIT, Linux 6.15")
    run = start(["/bin/sh", "-c", "read line; echo last words; exit 7"], interactive=True, env=mark("run-0"))
    pid = run.running()
    handle = os.pidfd_open(pid)
    writer = os.open(run.files.stdin, os.O_WRONLY | os.O_NONBLOCK)
    spares = run.engine().spares()
    killed(run)
    os.write(writer, b"go\n")
    os.close(writer)
    conftest.until(lambda: not conftest.alive(pid))

    run = successor(start, run, interactive=True, given={**spares, "pidfd": handle})
    record = run.ended()

    for descriptor in (handle, *spares.values()):
        os.close(descriptor)
    assert (record["code"], record["code_unknown"]) == (7, None)
    assert run.output() == b"last words\n"


def test_an_end_that_nobody_saw_is_unknown_and_says_why(start: Start) -> None:
    run = start(["/bin/sleep", "1000"], env=mark("run-0"))
    pid = run.running()
    killed(run)
    os.kill(pid, signal.SIGKILL)
    conftest.until(lambda: proctree.read(pid) is None)

    record = successor(start, run).ended()

    assert (record["code"], record["signal"]) == (None, None)
    assert "nobody held a pidfd" in record["code_unknown"]
    assert [gap.partition(":")[0] for gap in record["gaps"]] == ["out", "err"]


ESCAPE = """
import os, time
def out(*how):
    if not os.fork():
        for step in how: step()
        os.write(1, b'%d\\n' % os.getpid())
        os.closerange(0, 100)
        time.sleep(1000); os._exit(0)
fork_away = lambda: os.fork() and os._exit(0)
out(); out(os.setsid); out(os.setsid, fork_away); out(fork_away, os.setsid, fork_away)
time.sleep(1000)
"""


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("timeout_s", [0, 60])
def test_a_stop_after_a_takeover_finds_everybody_whoever_their_parent_is(
    start: Start, doomed: Doomed, timeout_s: float, paused: bool
) -> None:
    run = start(conftest.python(ESCAPE), env=mark("run-0"))
    doomed(run.running())
    conftest.until(lambda: run.output().count(b"\n") == 4)
    escaped = [doomed(int(line)) for line in run.output().split()]
    killed(run)
    run = successor(start, run)
    engine = run.engine()
    if paused:
        assert engine.ask(op="pause") == {"ok": True, "how": "signals"}
        found = [proctree.read(pid) for pid in [*escaped, run.agent_pid()]]
        assert all(process is not None and process.stopped() for process in found)
    before_s = time.monotonic()

    engine.ask(op="stop", timeout_s=timeout_s)
    record = run.ended(engine)

    assert time.monotonic() - before_s < 25
    assert (record["survivors"], record["stop_asked"]) == ([], True)
    assert not any(conftest.alive(pid) for pid in escaped)


def test_an_agent_that_ends_by_itself_after_a_takeover_leaves_nothing_behind(
    start: Start, doomed: Doomed
) -> None:
    script = "setsid sleep 1000 & echo $!; read line"
    run = start(["/bin/sh", "-c", script], interactive=True, env=mark("run-0"))
    doomed(run.running())
    conftest.until(lambda: run.output().endswith(b"\n"))
    left = doomed(int(run.output()))
    killed(run)
    run = successor(start, run, interactive=True, sweep_grace_s=0.1)

    with run.files.stdin.open("wb", buffering=0) as writer:
        writer.write(b"end\n")
    record = run.ended()

    assert (record["survivors"], conftest.alive(left)) == ([], False)


def test_a_pause_outlives_the_keeper_that_made_it(start: Start, doomed: Doomed) -> None:
    run = start(["/bin/sleep", "1000"], env=mark("run-0"))
    pid = doomed(run.running())
    run.engine().ask(op="pause")
    killed(run)

    run = successor(start, run)
    engine = run.engine()

    assert run.hello["paused"] is True
    os.kill(pid, signal.SIGCONT)
    conftest.until(lambda: (process := proctree.read(pid)) is not None and process.stopped())
    assert engine.ask(op="resume") == {"ok": True}
    process = proctree.read(pid)
    assert process is not None
    conftest.until(lambda: (process := proctree.read(pid)) is not None and not process.stopped())


def test_a_cgroup_outlives_the_keeper_that_made_it(cgroup_parent: Path, start: Start, doomed: Doomed) -> None:
    run = start(conftest.python(ESCAPE), cgroup_parent=str(cgroup_parent))
    doomed(run.running())
    conftest.until(lambda: run.output().count(b"\n") == 4)
    escaped = [doomed(int(line)) for line in run.output().split()]
    killed(run)

    run = successor(start, run, env={}, cgroup_parent=str(cgroup_parent))
    engine = run.engine()

    assert engine.ask(op="pause") == {"ok": True, "how": "cgroup"}
    engine.ask(op="stop", timeout_s=0)
    assert run.ended(engine)["survivors"] == []
    assert not any(conftest.alive(pid) for pid in escaped)
    assert not list(cgroup_parent.glob("kt-*"))


def test_the_listening_socket_is_borrowed_again_as_soon_as_somebody_lends_it(
    start: Start, doomed: Doomed, tmp_path: Path
) -> None:
    run = start(["/bin/sleep", "1000"], env=mark("run-0"))
    doomed(run.running())
    killed(run)
    path = tmp_path / "lend.sock"
    run = successor(start, run, lend_from=str(path))
    peer = run.peer()
    assert peer.ask(op="lend", instance="instance-1")["ok"] is False
    lender = socket.socket(socket.AF_UNIX)
    listening = socket.create_server(("127.0.0.1", 0))

    lender.bind(str(path))
    lender.listen()
    lender.settimeout(conftest.DEADLINE_S)
    stream, _ = lender.accept()
    assert json.loads(stream.recv(4096)) == {"op": "lend", "instance": "instance-1"}
    socket.send_fds(stream, [b'{"ok": true}\n'], [listening.fileno()])

    conftest.until(lambda: lent(run) == listening.getsockname())
    for thing in (stream, listening, lender):
        thing.close()


def lent(run: conftest.Run) -> object:
    peer = run.peer()
    peer.stream.sendall(b'{"op": "lend", "instance": "instance-1"}\n')
    answer, descriptors, _, _ = socket.recv_fds(peer.stream, 4096, 1)
    if not json.loads(answer)["ok"]:
        return None
    with socket.socket(fileno=descriptors[0]) as found:
        return found.getsockname()


def test_a_living_keeper_is_not_replaced_nor_are_there_ever_two(start: Start, doomed: Doomed) -> None:
    run = start(["/bin/sleep", "1000"], env=mark("run-0"))
    doomed(run.running())

    early = successor(start, run)
    refused = early.process.wait(conftest.DEADLINE_S)
    killed(run)
    second = successor(start, run)
    third = successor(start, run)

    assert (refused, third.process.wait(conftest.DEADLINE_S)) == (3, 3)
    assert second.engine().ask(op="status")["phase"] == "running"


def test_strangers_are_never_taken_for_the_agents_processes(start: Start, doomed: Doomed) -> None:
    run = start(["/bin/sleep", "1000"], env=mark("run-0"))
    other = start(["/bin/sleep", "1000"], run_id="run-9", env=mark("run-9"))
    doomed(run.running())
    stranger = other.running()
    killed(run)
    run = successor(start, run)
    engine = run.engine()

    engine.ask(op="stop", timeout_s=0)
    run.ended(engine)

    assert conftest.alive(stranger)
    assert other.engine().ask(op="status")["phase"] == "running"


def test_a_reused_pid_is_nobody_and_its_session_is_none_of_ours() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True) as leader:
        wrong = specification.Takeover({"agent_pid": leader.pid, "agent_start_ticks": 1})

        found = takeover.Orphans(wrong, "no-such-run", leaf=None, apart=set()).members()

        leader.kill()
    assert found == []


def test_a_kernel_that_tells_nothing_leaves_the_code_unknown() -> None:
    turns: list[tuple[int | None, str | None]] = []
    events = loop.Loop(failed=lambda error: turns.append((None, repr(error))))
    gone = specification.Takeover({"agent_pid": 2**22, "agent_start_ticks": 1})

    takeover.Watch(events, gone, gone=lambda status, why: (turns.append((status, why)), events.stop())[1])
    events.run()

    assert [(None, True)] == [(status, "nobody held a pidfd" in str(why)) for status, why in turns]
    assert takeover.leaf_of({"cgroup": "/nowhere"}) is None
    assert cgroup.read("/nowhere") == b""
