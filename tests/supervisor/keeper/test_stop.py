"""Stopped means that the tree is empty, whatever it tried."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

Start = Callable[..., conftest.Run]

IGNORE_TERM = (
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(1000)"
)


def stopped(run: conftest.Run, timeout_s: float) -> dict[str, object]:
    engine = run.engine()
    assert engine.ask(op="stop", timeout_s=timeout_s) == {"ok": True}
    return run.ended(engine)


def test_an_agent_that_heeds_term_ends_by_it_unforced(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()

    record = stopped(run, 20)

    assert (record["code"], record["signal"]) == (None, signal.SIGTERM)
    assert (record["stop_asked"], record["forced"], record["survivors"]) == (True, False, [])


def test_an_agent_that_cleans_up_after_term_keeps_its_code_and_its_words(start: Start) -> None:
    run = start(["/bin/sh", "-c", "trap 'echo saved; exit 4' TERM; echo ready; while :; do sleep 0.01; done"])
    run.said(b"ready\n")

    record = stopped(run, 20)

    assert record["code"] == 4
    assert run.output() == b"ready\nsaved\n"


def test_an_agent_that_ignores_term_is_killed_when_its_time_is_up(start: Start) -> None:
    run = start(conftest.python(IGNORE_TERM))
    run.said(b"ready")
    before_s = time.monotonic()

    record = stopped(run, 0.3)

    assert 0.3 <= time.monotonic() - before_s < 25
    assert (record["signal"], record["forced"]) == (signal.SIGKILL, True)


def test_no_time_means_at_once(start: Start) -> None:
    run = start(["/bin/sh", "-c", "trap 'echo never' TERM; echo ready; while :; do sleep 1; done"])
    run.said(b"ready\n")

    record = stopped(run, 0)

    assert (record["signal"], record["forced"]) == (signal.SIGKILL, True)
    assert run.output() == b"ready\n"


def test_a_second_stop_with_less_time_shortens_the_first_and_more_does_not_lengthen(start: Start) -> None:
    run = start(conftest.python(IGNORE_TERM))
    run.said(b"ready")
    engine = run.engine()
    engine.ask(op="stop", timeout_s=999_999_999)
    before_s = time.monotonic()

    engine.ask(op="stop", timeout_s=0.2)
    engine.ask(op="stop", timeout_s=900)

    assert run.ended(engine)["signal"] == signal.SIGKILL
    assert time.monotonic() - before_s < 25


def test_a_stopped_process_hears_term_because_cont_follows(start: Start) -> None:
    run = start(["/bin/sh", "-c", "trap 'echo heard; exit 6' TERM; echo ready; while :; do sleep 0.01; done"])
    run.said(b"ready\n")
    os.kill(run.agent_pid(), signal.SIGSTOP)

    record = stopped(run, 20)

    assert record["code"] == 6
    assert run.output() == b"ready\nheard\n"


def test_a_stopped_member_hears_term_although_its_leader_is_gone_by_then(start: Start) -> None:
    member = "import os, signal, sys\nsignal.signal(15, lambda *_: (os.write(1, b'heard'), os._exit(0)))\n"
    member += "print('ready', os.getpid(), flush=True)\nwhile True: signal.pause()\n"
    run = start(["/bin/sh", "-c", '"$@" & exec sleep 1000', "sh", *conftest.python(member)])
    conftest.until(lambda: run.output().endswith(b"\n"))
    os.kill(int(run.output().split()[1]), signal.SIGSTOP)

    record = stopped(run, 20)

    assert (record["signal"], record["forced"]) == (signal.SIGTERM, False)
    assert run.output().endswith(b"heard")


@pytest.mark.parametrize("timeout_s", [0, 20])
def test_descendants_that_escaped_are_found_and_end(start: Start, timeout_s: float) -> None:
    escape = (
        "import os, time\n"
        "def out(*how):\n"
        "    if not os.fork():\n"
        "        for step in how: step()\n"
        "        os.closerange(0, 1); os.closerange(2, 100)\n"
        "        os.write(1, b'%d\\n' % os.getpid()); os.close(1)\n"
        "        time.sleep(1000); os._exit(0)\n"
        "fork_away = lambda: os.fork() and os._exit(0)\n"
        "out(os.setsid)\n"
        "out(os.setpgrp)\n"
        "out(os.setsid, fork_away)\n"
        "out(fork_away, os.setsid, fork_away)\n"
        "time.sleep(1000)\n"
    )
    run = start(conftest.python(escape))
    conftest.until(lambda: run.output().count(b"\n") == 4)
    escaped = [int(word) for word in run.output().split()]
    assert all(conftest.alive(pid) for pid in escaped)

    record = stopped(run, timeout_s)

    assert record["survivors"] == []
    assert not any(conftest.alive(pid) for pid in escaped)


def test_members_that_outlive_their_leader_get_the_whole_window(start: Start) -> None:
    member = "import signal, time, sys\ndef end(*_):\n    signal.setitimer(signal.ITIMER_REAL, 1.5)\n"
    member += "signal.signal(14, lambda *_: (print('done', flush=True), sys.exit(0)))\n"
    member += "signal.signal(15, end)\nprint('ready', flush=True)\nwhile True: signal.pause()\n"
    leader = (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-I', '-S', '-c', {member!r}]).wait()"
    )
    run = start(conftest.python(leader), sweep_grace_s=0)
    run.said(b"ready\n")

    record = stopped(run, 20)

    assert (record["signal"], record["forced"]) == (signal.SIGTERM, False)
    assert run.output() == b"ready\ndone\n"


def test_an_agents_own_end_sweeps_what_it_left_even_what_ignores_term(start: Start) -> None:
    child = f"import subprocess, sys, os; p = subprocess.Popen([sys.executable, '-I', '-S', '-c', {IGNORE_TERM!r}],"
    child += "start_new_session=True, stdout=subprocess.PIPE); p.stdout.readline(); print(p.pid); sys.exit(3)"
    run = start(conftest.python("import subprocess, sys\n" + child), sweep_grace_s=0.1)

    record = run.ended()

    assert (record["code"], record["stop_asked"], record["forced"]) == (3, False, True)
    assert not conftest.alive(int(run.output()))


@pytest.mark.parametrize("leave", ["pass", "os.setsid()"], ids=["one group", "a session each"])
def test_a_chain_that_forks_faster_than_it_is_seen_still_ends(start: Start, leave: str) -> None:
    # Bounded by itself: 60 s at most, one process at a time.
    chain = (
        "import os, time, signal\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        "end = time.monotonic() + 60\n"
        "print('ready', flush=True)\n"
        f"while time.monotonic() < end:\n    if os.fork(): os._exit(0)\n    {leave}\n"
    )
    run = start(["/bin/sh", "-c", 'echo; "$@" & sleep 1000', "sh", *conftest.python(chain)])
    run.said(b"ready")

    record = stopped(run, 0.05)

    assert (record["forced"], record["survivors"]) == (True, [])


def test_a_stop_while_the_agent_is_being_born_ends_it(start: Start) -> None:
    run = start(["/bin/sh", "-c", "sleep 1000"])
    peer = run.peer()

    peer.ask(op="stop", timeout_s=0)
    record = run.ended()

    assert record["stop_asked"] is True
    assert record["signal"] in (None, signal.SIGKILL)
    assert not conftest.alive(run.agent_pid())


def test_the_keepers_own_term_is_a_stop_and_hangups_and_interrupts_are_nothing(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()
    engine = run.engine()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1):
        run.process.send_signal(number)
    assert engine.ask(op="status")["phase"] == "running"

    run.process.send_signal(signal.SIGTERM)
    record = run.ended(engine)

    assert (record["signal"], record["stop_asked"]) == (signal.SIGTERM, True)
    assert run.release() == 0


def test_a_stop_of_what_has_ended_changes_nothing(start: Start) -> None:
    run = start(["/bin/true"])
    engine = run.engine()
    before = run.ended(engine)

    assert engine.ask(op="stop", timeout_s=0) == {"ok": True}
    assert engine.ask(op="status")["exit"] == before
    assert before["stop_asked"] is False


def stopped_by(run: conftest.Run, script: str, timeout_s: float = 100) -> tuple[dict[str, object], float]:
    engine = run.engine()
    before_s = time.monotonic()
    command = {"argv": ["/bin/sh", "-c", script], "env": {"AGENT": str(run.agent_pid())}}
    assert engine.ask(op="stop", timeout_s=timeout_s, command=command) == {"ok": True}
    return run.ended(engine), time.monotonic() - before_s


def test_a_stop_command_that_works_is_all_there_is(start: Start) -> None:
    run = start(
        [
            "/bin/sh",
            "-c",
            "trap 'echo term' TERM; trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done",
        ]
    )
    run.said(b"ready\n")

    record, took_s = stopped_by(run, "kill -USR1 $AGENT")

    assert (record["code"], record["stop_asked"], record["forced"]) == (9, True, False)
    assert run.output() == b"ready\n"
    assert took_s < 25


def test_a_stop_command_that_fails_is_followed_by_term_at_once(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()

    record, took_s = stopped_by(run, "exit 1")

    assert (record["signal"], record["forced"]) == (signal.SIGTERM, False)
    assert took_s < 25


@pytest.mark.parametrize("script", ["exit 0", "sleep 1000"], ids=["does nothing", "hangs"])
def test_a_stop_command_without_effect_is_followed_by_term_after_half_of_the_window(
    start: Start, script: str
) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()

    record, took_s = stopped_by(run, script, timeout_s=1)

    assert (record["signal"], record["forced"]) == (signal.SIGTERM, False)
    assert 0.5 <= took_s < 25


def test_a_window_that_is_over_kills_agent_and_stop_command(start: Start, tmp_path: Path) -> None:
    run = start(conftest.python(IGNORE_TERM))
    run.said(b"ready")

    record, took_s = stopped_by(run, "echo $$ >pid; exec sleep 1000", timeout_s=0.6)

    assert (record["signal"], record["forced"], record["survivors"]) == (signal.SIGKILL, True, [])
    assert 0.6 <= took_s < 25
    assert not conftest.alive(int((tmp_path / "pid").read_text()))


def test_no_time_leaves_no_time_for_a_stop_command(start: Start, tmp_path: Path) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()

    record, _ = stopped_by(run, "touch ran", timeout_s=0)

    assert record["signal"] == signal.SIGKILL
    assert not (tmp_path / "ran").exists()


def test_a_stop_command_finds_a_paused_agent_awake(start: Start) -> None:
    run = start(["/bin/sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done"])
    run.said(b"ready\n")
    run.engine().ask(op="pause")

    record, took_s = stopped_by(run, "kill -USR1 $AGENT")

    assert (record["code"], took_s < 25) == (9, True)


def test_a_second_stop_without_time_ends_a_stop_command(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()
    engine = run.engine()
    engine.ask(op="stop", timeout_s=1000, command={"argv": ["/bin/sleep", "1000"]})
    before_s = time.monotonic()

    engine.ask(op="stop", timeout_s=0)

    assert run.ended(engine)["signal"] == signal.SIGKILL
    assert time.monotonic() - before_s < 25


def test_a_stop_command_that_makes_no_sense_is_refused_and_nothing_is_stopped(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()
    peer = run.peer()

    answer = peer.ask(op="stop", timeout_s=1, command={"argv": ["relative"]})

    assert "absolute" in answer["error"]
    assert peer.ask(op="status")["phase"] == "running"
