import os
import socket
import stat
from pathlib import Path

import pytest

from kt_ledger import unix_socket


@pytest.mark.parametrize("depth", [1, 40])
def test_a_socket_works_at_a_path_of_any_length(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["folder"] * depth)
    folder.mkdir(parents=True)

    with unix_socket.bind(folder / "s.sock"), socket.socket(socket.AF_UNIX) as client:
        unix_socket.connect(client, folder / "s.sock")

        assert 0o600 == stat.S_IMODE((folder / "s.sock").stat().st_mode)


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    unix_socket.bind(tmp_path / "s").close()

    with unix_socket.bind(tmp_path / "s"), socket.socket(socket.AF_UNIX) as client:
        unix_socket.connect(client, tmp_path / "s")

    assert ["s"] == [one.name for one in tmp_path.iterdir()]


def test_a_socket_that_cannot_be_put_in_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    mask = os.umask(0o022)
    os.umask(mask)

    with pytest.raises(OSError):
        unix_socket.bind(tmp_path / "s")

    assert ["s"] == [one.name for one in tmp_path.iterdir()]
    after = os.umask(mask)
    assert mask == after


def test_a_peer_is_known_by_its_user(tmp_path: Path) -> None:
    server = unix_socket.bind(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as client:
        unix_socket.connect(client, tmp_path / "s")
        accepted, _ = server.accept()

        assert unix_socket.peer_is(accepted, os.getuid())
        assert not unix_socket.peer_is(accepted, os.getuid() + 1)
        accepted.close()
    server.close()
