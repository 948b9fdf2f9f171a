"""A kit that is killed: nothing of it is left, at once, or after the next run where its undertaker was killed too."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.conftest import FAKE, Declared, fake

from kt_conformance import estate, processes
from kt_conformance.deadline import Deadline
from kt_conformance.undertaker import Undertaker

UNDERTAKER = "kt_conformance.undertaker"


def kit(folder: Path, section: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kt_cli.main", "adapter", "test", str(folder), "--section", section],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A kit that has an engine and an agent, and its folder."""
    (tmp_path / "adapter.toml").write_text(Declared(fake("--heartbeat-ms", "50")).text())
    with kit(tmp_path, "lifecycle") as process:
        root = Deadline(30).until(lambda: next(tmp_path.glob("kt-tck-*"), None), "its folder")
        Deadline(30).until(lambda: agents(root), "its agent")
        yield process, root
        process.kill()
    Deadline(30).until(lambda: not estate.kill_what_is_left(root), "the end of it")


def agents(root: Path) -> list[processes.Process]:
    return [one for one in estate.belonging(root) if FAKE in processes.arguments(one.pid)]


def undertaker_of(pid: int) -> int:
    [found] = [one for one in processes.descendants(pid) if UNDERTAKER in processes.arguments(one.pid)]
    return found.pid


def test_a_killed_kit_leaves_nothing(at_work: tuple[subprocess.Popen[str], Path]) -> None:
    process, root = at_work
    left = estate.belonging(root)

    process.kill()

    # engine, keeper, agent
    assert len(left) >= 3
    Deadline(30).until(lambda: not root.exists(), "its folder is removed")
    assert [] == [one for one in left if processes.same(one)]


def test_the_next_run_ends_what_is_left_where_the_undertaker_was_killed_too(
    at_work: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    process, root = at_work
    os.kill(undertaker_of(process.pid), signal.SIGKILL)
    process.kill()
    process.wait()
    left = estate.belonging(root)

    with kit(tmp_path, "memory") as following:
        _, said = following.communicate(timeout=60)

    assert len(left) >= 3
    told = f"kt: an earlier run of the kit (process {process.pid}) was killed: what it left was ended, and {root}"
    assert told in said
    assert [] == [one for one in left if processes.same(one)]
    assert [] == list(tmp_path.glob("kt-tck-*"))


@pytest.mark.long
def test_an_engine_that_does_not_answer_is_ended_too(at_work: tuple[subprocess.Popen[str], Path]) -> None:
    process, root = at_work
    left = estate.belonging(root)
    [engine] = [one for one in left if "kt_supervisor.engine" in processes.arguments(one.pid)]
    os.kill(engine.pid, signal.SIGSTOP)

    process.kill()

    Deadline(30).until(lambda: not root.exists(), "its folder is removed")
    assert [] == [one for one in left if processes.same(one)]


def test_with_the_word_it_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    root, lock = estate.found()
    os.close(lock)
    undertaker = Undertaker(root)

    begun_s = time.monotonic()
    undertaker.dismiss()

    assert root.exists()
    assert processes.read(undertaker.pid) is None
    assert time.monotonic() - begun_s < 5


def test_one_that_was_killed_is_dismissed_without_a_word(tmp_path: Path) -> None:
    undertaker = Undertaker(tmp_path)
    os.kill(undertaker.pid, signal.SIGKILL)

    undertaker.dismiss()

    assert processes.read(undertaker.pid) is None
