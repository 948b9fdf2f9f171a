import fcntl
import os
import subprocess
import sys
from pathlib import Path

from kt_supervisor.doctor import locks


def test_a_lock_is_seen_without_being_touched(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    free = locks.is_held(tmp_path / "lock")
    held = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)

    seen = locks.is_held(tmp_path / "lock")
    os.close(held)

    assert (False, True, False) == (free, seen, locks.is_held(tmp_path / "lock"))
    assert locks.is_held(tmp_path / "none") is None


def test_somebody_elses_lock_is_seen(tmp_path: Path) -> None:
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()

    seen = locks.is_held(tmp_path / "lock")
    child.communicate(b"\n")

    assert seen is True
