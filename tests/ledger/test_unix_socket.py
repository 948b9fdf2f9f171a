import contextlib
import errno
import os
import socket
import stat
import subprocess
import sys
import threading
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


def test_a_client_with_a_timeout_waits_for_its_place_in_a_full_queue(tmp_path: Path) -> None:
    with unix_socket.bind(tmp_path / "s", backlog=0) as server, contextlib.ExitStack() as clients:
        first, second, late = (clients.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(3))
        first.settimeout(10)
        unix_socket.connect(first, tmp_path / "s")
        late.settimeout(0.05)
        with pytest.raises(BlockingIOError):
            unix_socket.connect(late, tmp_path / "s")
        accepting = threading.Timer(0.05, lambda: clients.enter_context(server.accept()[0]))
        accepting.start()
        second.settimeout(10)
        unix_socket.connect(second, tmp_path / "s")
        accepting.join()

        assert [10, 10, 0.05] == [one.gettimeout() for one in (first, second, late)]


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


def test_a_socket_is_private_at_every_moment_whatever_the_umask(tmp_path: Path) -> None:
    """A watcher looks at everything in the folder all the time, while sockets come into being without a umask."""
    code = (
        "import os, sys; from pathlib import Path; from kt_ledger import unix_socket\n"
        "os.umask(0)\n"
        "for n in range(400): unix_socket.bind(Path(sys.argv[1]) / f's{n % 7}').close()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])

    seen: set[int] = set()
    while child.poll() is None:
        for entry in os.scandir(tmp_path):
            with contextlib.suppress(FileNotFoundError):
                seen.add(stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode))

    assert 0 == child.returncode
    assert {0o600} == seen


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the umask decides")
def test_a_socket_is_born_private_without_the_help_of_a_umask(tmp_path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    os.fchmod(server.fileno(), 0o600)
    mask = os.umask(0)
    server.bind(str(tmp_path / "s"))
    os.umask(mask)

    assert 0o600 == stat.S_IMODE((tmp_path / "s").stat().st_mode)
    server.close()


@pytest.mark.skipif(sys.platform != "linux", reason="SO_PEERCRED")
def test_a_peer_is_known_by_its_pid_for_as_long_as_it_lives(tmp_path: Path) -> None:
    server = unix_socket.bind(tmp_path / "s")
    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.stdin.read()"
    client = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s")], stdin=subprocess.PIPE)
    accepted, _ = server.accept()

    pid, there = unix_socket.peer_pid(accepted), unix_socket.peer_is_there(accepted)
    client.communicate()
    afterwards = unix_socket.peer_is_there(accepted)

    assert (client.pid, True) == (pid, there)
    known = accepted_tells_pidfd(accepted)
    assert afterwards is not known
    accepted.close()
    server.close()


def accepted_tells_pidfd(accepted: socket.socket) -> bool:
    """Tell whether this kernel has SO_PEERPIDFD at all: an older one cannot know that a peer has ended."""
    try:
        os.close(accepted.getsockopt(socket.SOL_SOCKET, 77))
    except OSError as error:
        return error.errno == errno.ESRCH
    return True
