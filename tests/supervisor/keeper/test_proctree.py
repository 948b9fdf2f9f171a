"""Who descends from whom, and that a reused number is never hit."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import proctree


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    conftest.until(lambda: os.getpgid(process.pid) == process.pid)
    yield process
    process.kill()
    process.wait()


def test_a_command_name_with_spaces_and_parentheses_is_no_trap() -> None:
    stat = b"42 (a) b (c) R) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654 1 1\n"

    process = proctree.Process(42, stat)

    assert (process.pid, process.state, process.parent, process.group) == (42, b"S", 7, 8)
    assert (process.threads, process.start_ticks) == (3, 987654)
    assert process.alive()


@pytest.mark.parametrize(
    ("state", "threads", "alive"), [("Z", 1, False), ("X", 0, False), ("Z", 2, True), ("D", 1, True)]
)
def test_a_zombie_is_dead_unless_a_thread_outlives_its_first(state: str, threads: int, alive: bool) -> None:
    stat = f"42 (a) {state} 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 987654 1 1\n".encode()

    assert proctree.Process(42, stat).alive() is alive


def test_start_ticks_are_the_kernels(child: subprocess.Popen[bytes]) -> None:
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()

    assert proctree.start_ticks(child.pid) == int(fields[19])
    assert proctree.start_ticks(2**22 + 1) == 0


def test_descendants_are_found_and_the_dead_left_out(child: subprocess.Popen[bytes]) -> None:
    assert child.pid in [process.pid for process in proctree.descendants(os.getpid())]

    child.kill()
    conftest.until(lambda: not conftest.alive(child.pid))  # a zombie: nobody has waited for it

    assert child.pid not in [process.pid for process in proctree.descendants(os.getpid())]
    assert proctree.read(child.pid) is not None


def test_a_number_that_now_belongs_to_another_is_not_signalled(child: subprocess.Popen[bytes]) -> None:
    process = proctree.read(child.pid)
    assert process is not None
    process.start_ticks -= 1

    assert not proctree.send(process, signal.SIGKILL)
    assert not proctree.send(process, signal.SIGKILL, to_group=True)
    assert child.poll() is None


def test_our_own_group_is_never_signalled() -> None:
    process = proctree.read(os.getpid())
    assert process is not None

    assert not proctree.send(process, signal.SIGKILL, to_group=True)


def test_a_gone_process_is_not_signalled(child: subprocess.Popen[bytes]) -> None:
    process = proctree.read(child.pid)
    assert process is not None
    child.kill()
    child.wait()

    assert not proctree.send(process, signal.SIGTERM)
