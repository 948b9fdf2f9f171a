"""A paused tree does nothing at all, wherever its members went, until it is resumed or stopped."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import proctree

Start = Callable[..., conftest.Run]

# Every process of the tree counts for itself in a file of its own.
COUNTERS = """
import os, sys, time
folder = sys.argv[1]
def count():
    name = f"{folder}/{os.getpid()}"
    n = 0
    while True:
        n += 1
        with open(name + ".new", "w") as file: file.write(str(n))
        os.rename(name + ".new", name)
        time.sleep(0.002)
def out(*how):
    if not os.fork():
        for step in how: step()
        count()
fork_away = lambda: os.fork() and os._exit(0)
out()
out(os.setsid)
out(os.setsid, fork_away)
out(os.setpgrp, lambda: os.closerange(0, 100))
count()
"""


@pytest.fixture
def counters(tmp_path: Path) -> Path:
    folder = tmp_path / "counters"
    folder.mkdir()
    return folder


def counts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.suffix != ".new"}


def counting(run: conftest.Run, folder: Path) -> None:
    conftest.until(lambda: len(counts(folder)) == 5 and all(counts(folder).values()))


def moved_on(folder: Path, before: dict[str, str]) -> bool:
    return all(value != before[name] for name, value in counts(folder).items())


def test_the_whole_tree_stands_still_until_it_is_resumed(start: Start, counters: Path) -> None:
    run = start([*conftest.python(COUNTERS), str(counters)])
    counting(run, counters)
    engine = run.engine()

    assert engine.ask(op="pause") == {"ok": True, "how": "signals"}

    before = counts(counters)
    assert engine.ask(op="status")["paused"] is True
    assert all(process.stopped() for process in proctree.descendants(run.process.pid))
    assert before == counts(counters)
    assert engine.ask(op="resume") == {"ok": True}
    assert engine.ask(op="status")["paused"] is False
    conftest.until(lambda: moved_on(counters, before))


def test_a_tree_in_a_cgroup_of_its_own_is_frozen_by_it(
    cgroup_parent: Path, start: Start, counters: Path
) -> None:
    run = start([*conftest.python(COUNTERS), str(counters)], cgroup_parent=str(cgroup_parent))
    counting(run, counters)
    engine = run.engine()
    (leaf,) = cgroup_parent.glob("kt-*")

    assert engine.ask(op="pause") == {"ok": True, "how": "cgroup"}

    before = counts(counters)
    assert (leaf / "cgroup.freeze").read_text() == "1\n"
    assert str(run.process.pid) not in (leaf / "cgroup.procs").read_text().split()
    assert before == counts(counters)
    assert engine.ask(op="resume") == {"ok": True}
    conftest.until(lambda: moved_on(counters, before))
    engine.ask(op="pause")
    engine.ask(op="stop", timeout_s=20)
    assert (run.ended(engine)["signal"], leaf.exists()) == (signal.SIGTERM, False)


def test_pausing_or_resuming_twice_is_fine(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()
    engine = run.engine()

    answers = [engine.ask(op=op) for op in ("resume", "pause", "pause", "resume", "resume")]

    held = {"ok": True, "how": "signals"}
    assert answers == [{"ok": True}, held, held, {"ok": True}, {"ok": True}]
    assert engine.ask(op="status")["paused"] is False


def test_whoever_is_continued_by_somebody_else_is_stopped_again(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    pid = run.running()
    run.engine().ask(op="pause")

    os.kill(pid, signal.SIGCONT)

    conftest.until(lambda: (process := proctree.read(pid)) is not None and process.stopped())


def test_a_job_that_was_stopped_before_stays_stopped_after_a_resume(start: Start) -> None:
    run = start(["/bin/sh", "-c", "sleep 1000 & echo $!; kill -STOP $!; wait"])
    conftest.until(lambda: run.output().endswith(b"\n"))
    job = int(run.output())
    conftest.until(lambda: (process := proctree.read(job)) is not None and process.stopped())
    engine = run.engine()

    engine.ask(op="pause")
    engine.ask(op="resume")

    found = [proctree.read(pid) for pid in (job, run.agent_pid())]
    assert [True, False] == [process is not None and process.stopped() for process in found]


@pytest.mark.parametrize("leave", ["pass", "os.setsid()"], ids=["one group", "a session each"])
def test_a_tree_that_forks_all_the_time_is_caught(start: Start, leave: str) -> None:
    chain = (
        "import os, time\nend = time.monotonic() + 60\nprint('ready', flush=True)\n"
        f"while time.monotonic() < end:\n    if os.fork(): os._exit(0)\n    {leave}\n"
    )
    run = start(["/bin/sh", "-c", 'echo; "$@" & sleep 1000', "sh", *conftest.python(chain)])
    run.said(b"ready")
    engine = run.engine()

    assert engine.ask(op="pause") == {"ok": True, "how": "signals"}

    still = proctree.descendants(run.process.pid)
    assert len(still) > 1
    assert all(process.stopped() for process in still)
    assert {p.pid for p in still} == {p.pid for p in proctree.descendants(run.process.pid)}


@pytest.mark.parametrize("timeout_s", [0, 60])
def test_a_paused_tree_stops_at_once(start: Start, counters: Path, timeout_s: float) -> None:
    run = start([*conftest.python(COUNTERS), str(counters)])
    counting(run, counters)
    engine = run.engine()
    engine.ask(op="pause")
    before_s = time.monotonic()

    engine.ask(op="stop", timeout_s=timeout_s)
    record = run.ended(engine)

    assert time.monotonic() - before_s < 25
    assert record["signal"] == (signal.SIGTERM if timeout_s else signal.SIGKILL)
    assert (record["survivors"], engine.ask(op="status")["paused"]) == ([], False)


def test_an_agent_killed_while_paused_takes_its_frozen_children_along(start: Start, counters: Path) -> None:
    run = start([*conftest.python(COUNTERS), str(counters)])
    counting(run, counters)
    engine = run.engine()
    engine.ask(op="pause")

    os.kill(run.agent_pid(), signal.SIGKILL)
    record = run.ended(engine)

    assert (record["signal"], record["survivors"]) == (signal.SIGKILL, [])
    assert not any(conftest.alive(int(name)) for name in counts(counters))


def test_only_a_running_agent_can_be_paused(start: Start) -> None:
    run = start(["/bin/true"])
    engine = run.engine()
    run.ended(engine)

    answer = engine.ask(op="pause")

    assert answer["ok"] is False
    assert "exited" in answer["error"]
    assert engine.ask(op="resume") == {"ok": True}
