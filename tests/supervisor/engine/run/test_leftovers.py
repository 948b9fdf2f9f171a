import fcntl
import os
import subprocess
import sys
from pathlib import Path

from kt_supervisor.engine.run import leftovers
from kt_supervisor.engine.run.leftovers import Left
from kt_supervisor.keeper import proctree

SPAWNS = (
    "import subprocess as s, time\ns.Popen(['setsid', 'sleep', '600'])\nprint(1, flush=True)\ntime.sleep(600)"
)


def test_a_tree_is_ended_by_the_runs_name_and_strangers_are_left_alone(tmp_path: Path) -> None:
    ours = subprocess.Popen(
        [sys.executable, "-c", SPAWNS],
        env=os.environ | {"KT_RUN": "run-of-this-test"},
        stdout=subprocess.PIPE,
    )
    stranger = subprocess.Popen(["sleep", "600"])
    assert ours.stdout is not None
    ours.stdout.readline()
    record = {"agent_pid": stranger.pid, "agent_start_ticks": proctree.start_ticks(stranger.pid) + 1}

    left = leftovers.end("run-of-this-test", record, lock=tmp_path / "lock")

    again = leftovers.find("run-of-this-test", record, lock=tmp_path / "lock")
    alive = stranger.poll() is None
    stranger.kill()
    stranger.wait()
    ours.wait(10)
    assert (2, (), [], True) == (len(left.ended), left.survivors, again, alive)


def test_whatever_holds_the_runs_lock_is_of_the_run_and_who_merely_reads_it_is_not(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    reader = subprocess.Popen(
        [sys.executable, "-c", f"f = open({str(lock)!r}, 'w'); print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    descriptor = os.open(lock, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    daemon = subprocess.Popen(["sleep", "600"], env={}, pass_fds=(descriptor,), start_new_session=True)
    os.close(descriptor)

    left = leftovers.end("no such run", None, lock=lock)

    daemon.wait(10)
    alive = reader.poll() is None
    reader.kill()
    reader.communicate()
    assert (Left((daemon.pid,), ()), True) == (left, alive)


def test_who_ignores_the_request_is_killed(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    ours = subprocess.Popen(
        [sys.executable, "-c", deaf], env=os.environ | {"KT_RUN": "deaf-run"}, stdout=subprocess.PIPE
    )
    assert ours.stdout is not None
    ours.stdout.readline()

    left = leftovers.end("deaf-run", None, lock=tmp_path / "lock")

    assert (Left((ours.pid,), ()), -9) == (left, ours.wait(10))


def test_what_was_left_is_told_in_words() -> None:
    assert "nothing of it was found" in Left((), ()).describe()
    assert "was ended" in Left((5,), ()).describe()
    assert "processes 5, 6" in Left((5, 6), (5, 6)).describe()
