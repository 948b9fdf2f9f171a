import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.gateway.mitm.gateway import eventually

from kt_gateway.mitm import presence

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="sock_diag(7) is Linux's")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            yield near, far


def ended(far: socket.socket) -> bool:
    return presence.has_left(far, or_ended=True)


def test_who_is_there_has_not_left_though_it_sent_what_nobody_read(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    near.sendall(b"unread")

    assert not presence.has_left(far, or_ended=True)
    assert not presence.has_left(far, or_ended=False)


@LINUX
def test_who_ended_its_side_still_reads(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    near.sendall(b"unread")

    near.shutdown(socket.SHUT_WR)

    eventually(lambda: ended(far))
    assert not presence.has_left(far, or_ended=False)


@pytest.mark.parametrize("shut_before", [False, True])
def test_who_closed_has_left(pair: tuple[socket.socket, socket.socket], shut_before: bool) -> None:
    near, far = pair
    if shut_before:
        near.shutdown(socket.SHUT_WR)

    near.close()

    eventually(lambda: presence.has_left(far, or_ended=False))


def test_who_reset_has_left(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    near.close()

    eventually(lambda: presence.has_left(far, or_ended=False))


@LINUX
def test_a_killed_process_has_left_whatever_it_had_ended_before() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code = (
            "import socket,sys,time; s=socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
            "s.shutdown(socket.SHUT_WR); time.sleep(600)"
        )
        process = subprocess.Popen([sys.executable, "-c", code, str(listener.getsockname()[1])])
        try:
            far, _ = listener.accept()
            eventually(lambda: ended(far))
            assert not presence.has_left(far, or_ended=False)
        finally:
            process.kill()
            process.wait()

        eventually(lambda: presence.has_left(far, or_ended=False))
        far.close()


def test_a_closed_end_of_our_own_is_no_presence(pair: tuple[socket.socket, socket.socket]) -> None:
    _, far = pair
    far.close()

    assert presence.has_left(far, or_ended=False)
