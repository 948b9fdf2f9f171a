"""`--detach`: the process that was started ends once the engine serves, or as the engine does."""

import subprocess
import sys
from pathlib import Path
from typing import Any


def start(state: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kt_supervisor.engine", "--detach", "--state-dir", str(state)]
    return subprocess.run(command, capture_output=False, stderr=subprocess.DEVNULL, text=True, timeout=60)


def test_it_ends_when_the_engine_answers_and_leaves_no_child(empty_house: Any) -> None:
    done = start(empty_house.root)

    assert 0 == done.returncode
    assert empty_house.answers()
    children = (
        Path("/proc/self/task").joinpath(Path("/proc/self").resolve().name, "children").read_text().split()
    )
    assert str(empty_house.engine_pid()) not in children


def test_an_engine_that_fails_gives_its_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert 1 == start(tmp_path / "file").returncode


def test_one_that_finds_another_ends_at_once(own_house: Any) -> None:
    assert 0 == start(own_house.root).returncode
