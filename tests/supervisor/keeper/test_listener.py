"""The listening socket outlives gateways: borrowed, kept, lent on, and its queue with it."""

import json
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_ledger import lending, unix_socket

Start = Callable[..., conftest.Run]


class Gateway:
    """The lending end, by `kt_ledger.lending`: the other room's own words."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server = unix_socket.bind(path)
        self.server.settimeout(conftest.DEADLINE_S)
        self.listener: socket.socket | None = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections: list[socket.socket] = []

    def serve(self) -> dict[str, object]:
        """Lend once, and return what was asked."""
        connection, _ = self.server.accept()
        request = json.loads(connection.recv(4096))
        assert self.listener is not None
        lending.lend(connection, self.listener)
        self.connections.append(connection)
        assert isinstance(request, dict)
        return request

    def die(self) -> None:
        self.server.close()
        if self.listener is not None:
            self.listener.close()
            self.listener = None
        for connection in self.connections:
            connection.close()
        self.connections = []


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    lender = Gateway(tmp_path / "lend.sock")
    yield lender
    lender.die()


def call(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=conftest.DEADLINE_S)


def test_the_socket_is_borrowed_before_the_agent_starts(start: Start, gateway: Gateway) -> None:
    run = start(["/bin/sleep", "1000"], lend_from=str(gateway.path))
    assert run.engine() and run.hello["phase"] == "borrowing"
    assert not run.files.record.exists()

    request = gateway.serve()

    assert request == {"op": "lend", "instance": "instance-1"}
    assert conftest.alive(run.agent_pid())


def test_connections_wait_while_the_gateway_is_dead_and_the_next_one_serves_them(
    start: Start, gateway: Gateway
) -> None:
    run = start(["/bin/sleep", "1000"], lend_from=str(gateway.path))
    gateway.serve()
    run.running()
    gateway.die()
    client = call(gateway.port)
    client.sendall(b"queued")

    listener, lender = lending.borrow(run.files.socket, "instance-1")

    listener.settimeout(conftest.DEADLINE_S)
    served, _ = listener.accept()
    assert served.recv(100) == b"queued"
    for stream in (client, served, listener, lender):
        stream.close()


def test_a_long_absence_resets_the_queued_until_a_gateway_borrows(start: Start, gateway: Gateway) -> None:
    run = start(["/bin/sleep", "1000"], lend_from=str(gateway.path), gateway_grace_s=0.05)
    gateway.serve()
    run.running()
    gateway.die()
    client = call(gateway.port)

    with pytest.raises(ConnectionResetError):
        client.recv(1)

    client.close()
    for _ in range(2):  # the borrower's own end starts the same again
        listener, lender = lending.borrow(run.files.socket, "instance-1")
        waiting = call(gateway.port)
        listener.settimeout(conftest.DEADLINE_S)
        served, _ = listener.accept()
        served.sendall(b"hello")
        assert waiting.recv(100) == b"hello"
        for stream in (waiting, served, listener, lender):
            stream.close()
        late = call(gateway.port)
        with pytest.raises(ConnectionResetError):
            late.recv(1)
        late.close()


def test_a_gateway_that_overlaps_its_predecessor_starts_no_grace(start: Start, gateway: Gateway) -> None:
    run = start(["/bin/sleep", "1000"], lend_from=str(gateway.path), gateway_grace_s=0)
    gateway.serve()
    run.running()
    listener, lender = lending.borrow(run.files.socket, "instance-1")
    peer = run.peer()

    gateway.die()
    for _ in range(3):
        peer.ask(op="status")

    client = call(gateway.port)
    assert select.select([client], [], [], 0.1)[0] == []
    assert "no gateway" not in run.files.keeper_log.read_text()
    for stream in (client, listener, lender):
        stream.close()


@pytest.mark.parametrize("instance", ["somebody else", None, 3])
def test_another_instances_socket_is_refused(start: Start, gateway: Gateway, instance: object) -> None:
    run = start(["/bin/sleep", "1000"], lend_from=str(gateway.path))
    gateway.serve()
    run.running()

    answer = run.peer().ask(op="lend", instance=instance)

    assert answer["ok"] is False
    assert "no listening socket" in answer["error"]


def test_without_a_socket_there_is_none_to_lend(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()

    with pytest.raises(lending.LendingRefused, match="no listening socket"):
        lending.borrow(run.files.socket, "instance-1")


def test_no_lender_means_no_agent(start: Start, tmp_path: Path) -> None:
    run = start(["/bin/true"], lend_from=str(tmp_path / "nobody.sock"))

    record = run.ended()

    assert "nobody.sock" in record["spawn_error"]
    assert "No such file" in record["spawn_error"]
    assert not run.files.record.exists()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"ok": false, "error": "never heard of it"}\n', "never heard of it"),
        (b"garbage\n", "wanted one line of JSON"),
        (b"[]\n", "wanted one line of JSON"),
        (b'{"ok": true}\n', "none was attached"),
        (b"", "wanted one line of JSON"),
        (b"x" * 5000, "wanted one line of JSON"),
    ],
)
def test_a_lender_that_refuses_or_babbles_means_no_agent(
    start: Start, gateway: Gateway, answer: bytes, words: str
) -> None:
    run = start(["/bin/true"], lend_from=str(gateway.path))
    connection, _ = gateway.server.accept()
    connection.sendall(answer)
    connection.shutdown(socket.SHUT_WR)

    record = run.ended()

    assert words in record["spawn_error"]
    assert not run.files.record.exists()
    connection.close()


def test_a_descriptor_that_is_no_socket_means_no_agent(start: Start, gateway: Gateway) -> None:
    run = start(["/bin/true"], lend_from=str(gateway.path))
    connection, _ = gateway.server.accept()
    with Path(os.devnull).open("rb") as file:
        socket.send_fds(connection, [b'{"ok": true}\n'], [file.fileno(), file.fileno()])

    record = run.ended()

    assert "is no socket" in record["spawn_error"]
    connection.close()


def test_a_silent_lender_is_given_up_after_five_seconds(start: Start, gateway: Gateway) -> None:
    run = start(["/bin/true"], lend_from=str(gateway.path))

    record = run.ended()

    assert "no answer within 5 s" in record["spawn_error"]


def test_a_stop_while_borrowing_ends_the_run_before_it_began(start: Start, gateway: Gateway) -> None:
    run = start(["/bin/true"], lend_from=str(gateway.path))
    engine = run.engine()
    assert run.hello["phase"] == "borrowing"

    engine.ask(op="stop", timeout_s=20)
    record = run.ended(engine)

    assert record["spawn_error"] == "stopped before it was started"
    assert record["stop_asked"] is True
    assert not run.files.record.exists()


def test_a_busy_lender_is_asked_again(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "busy.sock"
    server = unix_socket.bind(path, backlog=0)
    first = socket.socket(socket.AF_UNIX)
    first.connect(str(path))  # the queue of one is full now
    run = start(["/bin/sleep", "1000"], lend_from=str(path))
    assert run.engine() and run.hello["phase"] == "borrowing"

    server.accept()[0].close()
    connection, _ = server.accept()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lending.lend(connection, listener)

    assert conftest.alive(run.agent_pid())
    for stream in (first, connection, server):
        stream.close()


def test_a_lender_at_a_very_long_path_is_reached(start: Start, tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-folder-of-thirty-characters-"] * 6)
    folder.mkdir(parents=True)
    lender = Gateway(folder / "lend.sock")
    serving = threading.Thread(target=lender.serve)
    serving.start()

    run = start(["/bin/sleep", "1000"], lend_from=str(lender.path), state_dir=folder / "state")

    serving.join()
    assert conftest.alive(run.agent_pid())
    assert run.peer().ask(op="status")["phase"] in ("spawning", "running")
    lender.die()


def test_the_agent_does_not_hold_the_listening_socket(start: Start, gateway: Gateway) -> None:
    code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
    run = start(conftest.python(code), lend_from=str(gateway.path))
    gateway.serve()

    run.ended()

    assert run.output() == b"[0, 1, 2, 3, 4]\n"
