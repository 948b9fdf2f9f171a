import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kt_ledger import lending, unix_socket


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def serve(path: Path, answer: Callable[[socket.socket], None]) -> threading.Thread:
    """Answer one borrower, in another thread."""
    server = unix_socket.bind(path)

    def run() -> None:
        connection, _ = server.accept()
        with server, connection:
            assert b'"op": "lend"' in connection.recv(4096)
            answer(connection)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_borrowed_socket_accepts_what_connects_to_the_lenders_port(
    tmp_path: Path, listener: socket.socket
) -> None:
    lender = serve(tmp_path / "s", lambda connection: lending.lend(connection, listener))

    borrowed, connection = lending.borrow(tmp_path / "s", "i1")
    lender.join()
    port = listener.getsockname()[1]
    listener.close()
    with socket.create_connection(("127.0.0.1", port)), borrowed.accept()[0]:
        pass

    assert b"" == connection.recv(1)  # the lender has gone, and the borrower can see it
    borrowed.close()
    connection.close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors through /proc")
@pytest.mark.parametrize(
    "said", [b"nonsense\n", b"[1]\n", b"", b'{"ok": false, "error": "no such"}\n', b"{}\n"]
)
@pytest.mark.parametrize("attach", [True, False])
def test_any_other_answer_is_a_refusal_that_keeps_no_descriptor(
    tmp_path: Path, listener: socket.socket, said: bytes, attach: bool
) -> None:
    before = open_descriptors()

    def answer(connection: socket.socket) -> None:
        if said and attach:
            socket.send_fds(connection, [said], [listener.fileno(), listener.fileno()])
        else:
            connection.sendall(said)

    lender = serve(tmp_path / "s", answer)
    with pytest.raises(lending.LendingRefused):
        lending.borrow(tmp_path / "s", "i1")
    lender.join()

    assert before == open_descriptors()


def test_a_refusal_gives_the_lenders_reason(tmp_path: Path) -> None:
    lender = serve(tmp_path / "s", lambda connection: lending.refuse(connection, "unknown instance"))

    with pytest.raises(lending.LendingRefused, match="unknown instance"):
        lending.borrow(tmp_path / "s", "i1")
    lender.join()


def test_nobody_there_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(lending.LendingRefused, match="no listening socket"):
        lending.borrow(tmp_path / "nobody", "i1")
