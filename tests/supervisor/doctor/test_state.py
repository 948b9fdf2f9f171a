import os
import socket
import stat
from pathlib import Path

import pytest

from kt_ledger import unix_socket
from kt_ledger.layout import StateLayout
from kt_supervisor.doctor import state
from kt_supervisor.doctor.finding import Level
from kt_supervisor.engine import state_dir

MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /home rw - nfs4 server:/home rw
31 30 0:26 / /home/me/with\040space rw - ext4 /dev/b rw
32 22 0:27 / /tmp rw - tmpfs tmpfs rw
33 22 0:28 / /tmp rw master:3 - xfs /dev/c rw
"""


@pytest.mark.parametrize(
    ("free_bytes", "inodes", "expected"),
    [
        (10 << 20, None, Level.BAD),
        (500 << 20, None, Level.WARN),
        (5 << 30, 0, Level.BAD),
        (5 << 30, 100, Level.WARN),
        (5 << 30, 10**6, Level.OK),
        (5 << 30, None, Level.OK),
    ],
)
def test_a_disk_that_fills_is_told_before_it_is_full(
    free_bytes: int, inodes: int | None, expected: Level
) -> None:
    finding = state.judge_disk(free_bytes, inodes)

    assert expected is finding.level
    assert bool(finding.do) is (expected is not Level.OK)


def test_the_disk_of_a_place_that_is_not_there_yet_is_its_parents(tmp_path: Path) -> None:
    assert tmp_path == state.nearest(tmp_path / "a" / "b")


@pytest.mark.parametrize(
    ("path", "kind", "level"),
    [
        ("/var/kt", "ext4", Level.OK),
        ("/home/me/kt", "nfs4", Level.WARN),
        ("/home/me/with space/kt", "ext4", Level.OK),
        ("/homework", "ext4", Level.OK),
        ("/tmp/kt", "xfs", Level.OK),
    ],
)
def test_the_kind_of_the_file_system_is_that_of_the_nearest_mount(path: str, kind: str, level: Level) -> None:
    found = state.kind_of(Path(path), MOUNTS)

    assert kind == found
    assert level is state.judge_filesystem(found).level


def test_a_file_system_that_goes_with_the_machine_is_told() -> None:
    assert Level.WARN is state.judge_filesystem("tmpfs").level


def test_the_file_system_of_this_machine_has_a_kind(tmp_path: Path) -> None:
    assert "unknown" not in state.filesystem(tmp_path).found


def test_a_file_that_others_can_read_is_named_and_an_agents_own_is_not(tmp_path: Path) -> None:
    files = StateLayout(tmp_path / "state")
    files.home("bot").mkdir(parents=True)
    for folder in (files.root, files.root / "agents"):
        folder.chmod(0o700)
    (files.home("bot") / "page.html").touch(0o644)
    private = state.permissions(files)
    files.engine_log.touch(0o600)
    files.engine_log.chmod(0o640)

    found = state.permissions(files)

    assert Level.OK is private.level
    assert (Level.BAD, True) == (found.level, str(files.engine_log) in found.found)
    assert 0o640 == stat.S_IMODE(files.engine_log.stat().st_mode)


def test_secrets_that_others_can_read_are_bad(tmp_path: Path) -> None:
    files = StateLayout(tmp_path)
    absent = state.secrets(files)
    files.secrets.touch()
    files.secrets.chmod(0o640)
    open_ones = state.secrets(files)
    files.secrets.chmod(0o600)

    assert [Level.OK, Level.BAD, Level.OK] == [one.level for one in (absent, open_ones, state.secrets(files))]


def test_a_socket_without_a_server_is_stale_and_one_with_a_lock_is_not(tmp_path: Path) -> None:
    files = StateLayout(tmp_path)
    unix_socket.bind(files.engine_socket).close()
    lock = state_dir.take_lock(files)
    served = state.sockets(files)
    os.close(lock)

    left = state.sockets(files)

    assert [Level.OK, Level.WARN] == [served.level, left.level]
    assert "engine.sock" in left.found
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
        unix_socket.connect(client, files.engine_socket)
