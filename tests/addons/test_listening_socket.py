import asyncio
import socket
import threading
from pathlib import Path

import pytest
from tests import ports

from kt_addons import listening_socket
from kt_gateway.admin import PortTaken
from kt_ledger import lending, messages, unix_socket


def listener(port: int, keeper: Path | None) -> messages.Listener:
    return messages.Listener(
        instance_id="i",
        name="a",
        port=port,
        upstream="http://127.0.0.1:9/v1",
        borrow_from=None if keeper is None else str(keeper),
    )


@pytest.mark.parametrize("unanswered", [0, 1, 3])
def test_a_keeper_that_is_too_busy_to_answer_is_asked_again(tmp_path: Path, unanswered: int) -> None:
    kept = listening_socket.bind(0)
    port = kept.getsockname()[1]

    with kept, unix_socket.bind(tmp_path / "keeper.sock") as keeper:

        def serve() -> None:
            for number in range(unanswered + 1):
                connection, _ = keeper.accept()
                with connection:
                    if number == unanswered:
                        connection.recv(4096)
                        lending.lend(connection, kept)

        thread = threading.Thread(target=serve)
        thread.start()
        endpoint, lender = asyncio.run(listening_socket.obtain(listener(port, tmp_path / "keeper.sock")))
        thread.join(20)

    assert lender is not None and port == endpoint.getsockname()[1]
    lender.close()
    endpoint.close()


def test_without_its_keeper_a_free_port_is_bound(tmp_path: Path) -> None:
    port = ports.free()

    endpoint, lender = asyncio.run(listening_socket.obtain(listener(port, tmp_path / "nobody.sock")))

    assert (port, None) == (endpoint.getsockname()[1], lender)
    endpoint.close()


@pytest.mark.parametrize("borrows", [False, True])
def test_a_port_of_somebody_else_is_said_to_be_taken(tmp_path: Path, borrows: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        wanted = listener(other.getsockname()[1], tmp_path / "nobody.sock" if borrows else None)

        with pytest.raises(PortTaken, match="give another"):
            asyncio.run(listening_socket.obtain(wanted))
