"""Commands run beside the agent: with its environment, in their own tree, and never longer than they may."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import runner

Start = Callable[..., conftest.Run]


def ran(engine: conftest.Peer, *argv: str, timeout_s: float = 20, **fields: Any) -> dict[str, Any]:
    answer = engine.ask(op="run", id=7, argv=list(argv), timeout_s=timeout_s, **fields)
    assert answer == {"ok": True}
    told = engine.event("ran")
    assert told["id"] == 7
    return told


@pytest.fixture
def run(start: Start) -> conftest.Run:
    found = start(["/bin/sleep", "1000"], env={"PATH": os.environ["PATH"], "AGENTS": "own"})
    found.running()
    return found


def test_a_command_has_the_agents_environment_folder_and_nothing_to_read(
    run: conftest.Run, tmp_path: Path
) -> None:
    told = ran(run.engine(), "/bin/sh", "-c", "pwd; echo $AGENTS $MORE; cat; exit 3", env={"MORE": "too"})

    assert (told["code"], told["signal"], told["timed_out"], told["error"]) == (3, None, False, None)
    assert told["last_lines"] == [str(tmp_path), "own too"]
    log = run.files.root / "commands.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert b"own too\n" in log.read_bytes()


def test_a_command_that_takes_too_long_ends_with_everything_it_started(run: conftest.Run) -> None:
    script = "setsid sleep 1000 & echo $!; (setsid sleep 1000 & echo $!) ; wait"

    told = ran(run.engine(), "/bin/sh", "-c", script, timeout_s=0.3)

    assert (told["code"], told["signal"], told["timed_out"]) == (None, signal.SIGKILL, True)
    assert len(told["last_lines"]) == 2
    assert not any(conftest.alive(int(pid)) for pid in told["last_lines"])


def test_what_a_command_leaves_behind_ends_with_it_and_holds_nothing_up(run: conftest.Run) -> None:
    before_s = time.monotonic()

    told = ran(run.engine(), "/bin/sh", "-c", "setsid sleep 1000 & echo $!", timeout_s=100)

    assert time.monotonic() - before_s < 25
    assert (told["code"], told["timed_out"]) == (0, False)
    assert not conftest.alive(int(told["last_lines"][0]))


def test_a_command_that_cannot_be_started_says_why(run: conftest.Run) -> None:
    told = ran(run.engine(), "/nowhere/program")

    assert (told["code"], told["signal"]) == (None, None)
    assert "/nowhere/program" in told["error"]
    assert "No such file" in told["error"]


def test_a_flood_from_a_command_is_bounded_and_its_last_lines_are_told(run: conftest.Run) -> None:
    flood = "import sys\nfor n in range(200_000): sys.stdout.write('line %d\\n' % n)"

    told = ran(run.engine(), *conftest.python(flood))

    assert told["code"] == 0
    assert told["last_lines"][-1] == "line 199999"
    assert len(told["last_lines"]) == runner.LAST_LINES
    log = (run.files.root / "commands.log").read_bytes()
    assert runner.MAX_OUTPUT_BYTES <= len(log) < runner.MAX_OUTPUT_BYTES + 1000
    assert b"of output not kept" in log


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"id": 1, "argv": ["relative"]}, "argv[0]"),
        ({"id": 1, "argv": []}, "argv"),
        ({"id": 1}, "argv"),
        ({"argv": ["/bin/true"]}, "id"),
        ({"id": 1, "argv": ["/bin/true"], "timeout_s": "soon"}, "timeout_s"),
        ({"id": 1, "argv": ["/bin/true"], "env": {"A": 1}}, "env"),
        ({"id": 1, "argv": ["/bin/true", "\0"]}, "argv"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(
    run: conftest.Run, request_: dict[str, object], why: str
) -> None:
    answer = run.peer().ask(op="run", **request_)

    assert answer["ok"] is False
    assert why in answer["error"]


def test_commands_at_once_are_bounded(run: conftest.Run) -> None:
    peer = run.peer()

    answers = [peer.ask(op="run", id=n, argv=["/bin/sleep", "1000"], timeout_s=1000)["ok"] for n in range(9)]

    assert [True] * 8 + [False] == answers


def test_a_paused_agents_command_runs_and_the_agent_stays_paused(run: conftest.Run) -> None:
    engine = run.engine()
    engine.ask(op="pause")

    told = ran(engine, "/bin/sh", "-c", "echo awake")

    assert told["last_lines"] == ["awake"]
    assert Path(f"/proc/{run.agent_pid()}/stat").read_text().split()[2] == "T"


def test_a_stop_ends_commands_at_once_with_their_trees(run: conftest.Run) -> None:
    engine = run.engine()
    engine.ask(
        op="run", id=1, argv=["/bin/sh", "-c", "setsid sleep 1000 & echo $! >left; wait"], timeout_s=900
    )
    left = Path(f"/proc/{run.agent_pid()}/cwd").readlink() / "left"
    conftest.until(lambda: left.exists() and left.read_text().endswith("\n"))

    engine.ask(op="stop", timeout_s=20)
    told = engine.event("ran")
    record = run.ended(engine)

    assert (told["signal"], record["signal"]) == (signal.SIGKILL, signal.SIGTERM)
    assert record["survivors"] == []
    assert not conftest.alive(int(left.read_text()))


def test_a_command_after_the_exit_is_over_before_the_keeper_goes(run: conftest.Run, tmp_path: Path) -> None:
    engine = run.engine()
    engine.ask(op="stop", timeout_s=0)
    engine.event("exited")
    engine.ask(op="run", id=1, argv=["/bin/sh", "-c", "sleep 0.3; echo late >late"], timeout_s=20)

    status = run.release()

    assert (status, (tmp_path / "late").read_text()) == (0, "late\n")


def test_a_runner_that_is_killed_leaves_nothing_behind_after_the_stop(
    run: conftest.Run, tmp_path: Path, doomed: Callable[[int], int]
) -> None:
    engine = run.engine()
    script = "echo $PPID $$ >pids; exec sleep 1000"
    engine.ask(op="run", id=1, argv=["/bin/sh", "-c", script], timeout_s=900)
    pids = tmp_path / "pids"
    conftest.until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    parent, command = (doomed(int(word)) for word in pids.read_text().split())

    os.kill(parent, signal.SIGKILL)
    told = engine.event("ran")
    engine.ask(op="stop", timeout_s=20)
    record = run.ended(engine)

    assert (told["code"], told["error"]) == (None, "its runner was killed")
    assert (record["survivors"], conftest.alive(command)) == ([], False)
