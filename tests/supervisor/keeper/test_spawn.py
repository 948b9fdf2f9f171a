"""How agents are born, and how it reads when they are not."""

import fcntl
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

Start = Callable[..., conftest.Run]


def test_the_agent_gets_its_streams_the_lock_and_no_descriptor_more(start: Start) -> None:
    run = start(conftest.python("import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"))

    run.ended()

    assert run.output() == b"[0, 1, 2, 3, 4]\n"  # 4 is listdir's own


def test_the_agent_leads_a_session_and_a_group_of_its_own(start: Start) -> None:
    run = start(
        conftest.python("import os; print(os.getpid() == os.getsid(0) == os.getpgrp(), os.getppid())")
    )

    run.ended()

    assert f"True {run.process.pid}\n".encode() == run.output()


def test_the_agent_starts_with_default_signals_and_an_empty_mask(start: Start) -> None:
    run = start(["/bin/sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status"])

    run.ended()

    c_library = 0b11 << 31  # 32 and 33 belong to the C library (signal(7)): inherited, and nobody's to change
    assert [0, 0] == [int(line.split()[1], 16) & ~c_library for line in run.output().splitlines()]


def test_the_environment_and_the_directory_are_the_given_ones_and_nothing_more(
    start: Start, tmp_path: Path
) -> None:
    home = tmp_path / "hömé"
    home.mkdir()
    # LC_CTYPE is what Python sets for itself in a C locale, so the probe is not Python.
    run = start(["/usr/bin/env"], env={"A": "ü=1\n2", "B": "\udcff"}, cwd=str(home))

    run.ended()

    assert "A=ü=1\n2\nB=".encode() + b"\xff\n" == run.output()


def test_the_working_directory_is_the_given_one(start: Start, tmp_path: Path) -> None:
    run = start(["/bin/pwd"], cwd=str(tmp_path), env={})

    run.ended()

    assert f"{tmp_path}\n".encode() == run.output()


def test_the_agent_keeps_the_umask_of_the_keepers_parent(start: Start) -> None:
    ours = os.umask(0o027)
    try:
        run = start(["/bin/sh", "-c", "umask"])
    finally:
        os.umask(ours)

    run.ended()

    assert int(run.output(), 8) == 0o027


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, "ENOENT"),
        ("#!/no/such/interpreter\n", 0o755, "interpreter its first line names"),
        ("echo hello\n", 0o755, "ENOEXEC"),
        ("#!/bin/sh\n", 0o644, "EACCES"),
    ],
)
def test_what_cannot_be_executed_is_a_spawn_error_in_words(
    start: Start, tmp_path: Path, content: str | None, mode: int, words: str
) -> None:
    program = tmp_path / "program"
    if content is not None:
        program.write_text(content)
        program.chmod(mode)

    record = start([str(program)]).ended()

    assert words in record["spawn_error"]
    assert str(program) in record["spawn_error"]
    assert (record["code"], record["signal"]) == (None, None)


@pytest.mark.parametrize("where", ["/no/such/place", "/etc/passwd"])
def test_a_directory_that_cannot_be_entered_is_a_spawn_error(start: Start, where: str) -> None:
    record = start(["/bin/true"], cwd=where).ended()

    assert where in record["spawn_error"]
    assert "working directory" in record["spawn_error"]


def test_arguments_too_long_for_the_kernel_are_a_spawn_error(start: Start) -> None:
    record = start(["/bin/true", "x" * 200_000]).ended()

    assert "E2BIG" in record["spawn_error"]


def test_a_zero_byte_in_an_argument_is_a_spawn_error(start: Start) -> None:
    record = start(["/bin/true", "a\0b"]).ended()

    assert "/bin/true: could not be started" in record["spawn_error"]


def test_an_uninteractive_agent_reads_the_end_at_once(start: Start) -> None:
    run = start(conftest.python("import os; print(os.readlink('/proc/self/fd/0'), os.read(0, 9))"))

    run.ended()

    assert run.output() == b"/dev/null b''\n"
    assert not run.files.stdin.exists()


def test_standard_input_stays_open_when_writers_come_and_go(start: Start) -> None:
    run = start(["/bin/sh", "-c", "while read line; do echo got $line; done"], interactive=True)
    run.running()
    conftest.until(run.files.stdin.exists)
    assert run.files.stdin.stat().st_mode & 0o777 == 0o600

    for word in (b"one", b"two"):
        with run.files.stdin.open("wb", buffering=0) as writer:
            writer.write(word + b"\n")
        run.said(b"got " + word + b"\n")

    assert conftest.alive(run.agent_pid())


def test_the_lock_is_held_while_anything_of_the_run_lives(start: Start, doomed: Callable[[int], int]) -> None:
    run = start(["/bin/sh", "-c", "echo ready; exec sleep 1000"])
    run.said(b"\n")
    agent = doomed(run.agent_pid())

    run.process.kill()
    run.process.wait()

    with run.files.lock.open("rb") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(agent, signal.SIGKILL)
        conftest.until(lambda: not conftest.alive(agent))
        fcntl.flock(lock, fcntl.LOCK_EX)


def test_the_record_is_written_before_the_agents_first_instruction(start: Start) -> None:
    program = "import sys; sys.stdout.write(open(sys.argv[1]).read())"
    run = start([*conftest.python(program), "state/runs/run-0/run.json"])

    run.ended()
    record = json.loads(run.output())

    assert record == json.loads(run.files.record.read_bytes())
    assert record["keeper_pid"] == run.process.pid
    assert record["agent_pid"] == record["pgid"]
    assert record["agent_start_ticks"] >= record["keeper_start_ticks"] > 0
    assert Path("/proc/sys/kernel/random/boot_id").read_text().strip() == record["boot_id"]
