import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kt_manifest import replacing

FULL = """
import os, resource, signal, sys
from pathlib import Path
from kt_manifest import replacing
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3, 3))
with replacing.locked(Path(sys.argv[1])) as folder:
    try:
        replacing.replace_at(folder, "f", b"too long")
    except OSError as error:
        print(error.errno)
"""


def test_a_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o644)

    with replacing.locked(tmp_path) as folder:
        replacing.replace_at(folder, "f", b"new")

    assert (tmp_path / "f").read_text() == "new"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
    assert [tmp_path / "f"] == list(tmp_path.iterdir())


def test_what_a_crash_left_behind_is_in_nobodys_way_and_no_trap(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("untouched")
    (tmp_path / ".kt.new").symlink_to("victim")

    with replacing.locked(tmp_path) as folder:
        replacing.replace_at(folder, "f", b"new")

    assert (tmp_path / "f").read_text() == "new"
    assert (tmp_path / "victim").read_text() == "untouched"


def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")

    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == str(27)  # EFBIG
    assert (tmp_path / "f").read_text() == "old"
    assert [tmp_path / "f"] == list(tmp_path.iterdir())


def test_a_folder_that_somebody_else_holds_is_given_up_in_time(tmp_path: Path) -> None:
    holder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)

    with (
        pytest.raises(replacing.Locked, match=r"more than 0\.05 s"),
        replacing.locked(tmp_path, timeout_s=0.05),
    ):
        pytest.fail("two at once")

    os.close(holder)
    with replacing.locked(tmp_path, timeout_s=0):
        pass


def test_the_lock_goes_with_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replacing.locked(tmp_path):
        raise ZeroDivisionError

    with replacing.locked(tmp_path, timeout_s=0):
        pass


def test_the_mode_that_was_asked_for_is_not_cut_by_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with replacing.locked(tmp_path) as folder:
            replacing.replace_at(folder, "f", b"x", mode=0o664)
    finally:
        os.umask(before)

    assert 0o664 == (tmp_path / "f").stat().st_mode & 0o777
