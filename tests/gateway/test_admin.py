"""The admin and lend sockets of a real gateway process."""

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import ports
from tests.gateway.mitm.gateway import Client, Gateway, Lane, UnixConnection, eventually
from tests.gateway.mitm.provider import COMPLETION, Asked, Wire, always, sized

from kt_ledger import journal, lending, messages, unix_socket

MakeLane = Callable[..., Lane]
StartGateway = Callable[..., Gateway]
UPSTREAM = "http://127.0.0.1:1/v1"


def put(process: Gateway, instance: str, **fields: object) -> tuple[int, dict[str, object]]:
    message = {"name": "a", "port": 0, "upstream": UPSTREAM, "grants": [], **fields}
    return process.ask("PUT", f"/v1/listeners/{instance}", message)


def test_the_status_says_who_it_is_and_what_it_holds(start_gateway: StartGateway) -> None:
    process = start_gateway()
    port = put(process, "i-1")[1]["port"]

    status = messages.Status.from_json(process.ask("GET", "/v1/status")[1])

    record = json.loads(process.files.record.read_text())
    assert (status.pid, status.listeners, status.in_flight) == (process.process.pid, {"i-1": port}, 0)
    assert status.journal_healthy
    assert {name: getattr(status, name) for name in record} == record
    assert process.files.journal(status.incarnation).is_dir()
    assert status.start_ticks > 0


def test_everything_of_the_gateway_is_for_its_owner_only(start_gateway: StartGateway) -> None:
    process = start_gateway()

    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in process.files.root.rglob("*")}

    assert {mode for path, mode in modes.items() if not path.is_dir()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_a_second_gateway_leaves_the_first_alone(start_gateway: StartGateway) -> None:
    process = start_gateway()
    state = str(process.files.root.parent)

    second = subprocess.run(
        [sys.executable, "-m", "kt_addons", "--state-dir", state],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert second.returncode == 4
    assert "already serves" in second.stderr
    assert process.ask("GET", "/v1/status")[0] == 200


def test_a_port_that_somebody_has_is_said_to_be_taken(gateway: Gateway) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        status, answer = put(gateway, "taken", port=stranger.getsockname()[1])

    assert (status, answer["error"]) == (409, "port_taken")
    assert "taken" not in gateway.ask("GET", "/v1/status")[1]["listeners"]


def test_a_taken_port_leaves_the_old_listener_as_it_was(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        status, _ = put(lane.gateway, lane.instance, port=stranger.getsockname()[1])

    assert status == 409
    assert lane.client(lane.post()).answer()[1] == COMPLETION


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"name": "a", "port": 0},
        {"name": "a", "port": 0, "upstream": "ftp://x"},
        {"name": "a", "port": 0, "upstream": "/v1"},
        {"name": "a", "port": 0, "upstream": "http://u:p@x/v1"},
        {"name": "a", "port": 0, "upstream": "http://x:99999/v1"},
        {"name": "a", "port": "x", "upstream": UPSTREAM},
        {"name": "a", "port": 0, "upstream": UPSTREAM, "grants": [{"token": "x"}]},
        {"name": "a", "port": 0, "upstream": UPSTREAM, "listener_auth": "maybe"},
        {"name": "a", "port": 0, "upstream": UPSTREAM, "grants": [{"run_id": "r", "token": ""}]},
        [],
    ],
)
def test_a_message_that_cannot_be_served_is_refused_with_a_reason(gateway: Gateway, message: object) -> None:
    status, answer = gateway.ask("PUT", "/v1/listeners/bad", message)  # type: ignore[arg-type]

    assert (status, answer["error"]) == (400, "listener_invalid")
    assert len(answer["message"]) > 20
    assert "bad" not in gateway.ask("GET", "/v1/status")[1]["listeners"]


def test_unknown_fields_of_a_later_version_are_ignored(gateway: Gateway) -> None:
    assert put(gateway, "later", from_the_future=1)[0] == 200
    assert gateway.ask("DELETE", "/v1/listeners/later")[0] == 200


def test_a_deleted_listener_is_closed_and_unknown(gateway: Gateway) -> None:
    port = put(gateway, "gone")[1]["port"]

    assert gateway.ask("DELETE", "/v1/listeners/gone")[0] == 200

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(str(port)))).close()
    assert gateway.ask("DELETE", "/v1/listeners/gone")[0] == 404


def test_an_open_connection_of_a_deleted_listener_finishes_its_call_and_gets_no_other(
    make_lane: MakeLane,
) -> None:
    go_on = threading.Event()

    def gated(_: Asked, wire: Wire) -> bool:
        go_on.wait(20)
        wire.send(sized(COMPLETION))
        return True

    lane = make_lane(gated)
    kept, busy = lane.client(lane.get("/.kt/probe")), lane.client(lane.post())
    kept.answer()
    lane.provider.wait_for(1)

    lane.gateway.ask("DELETE", f"/v1/listeners/{lane.instance}")
    kept.send(lane.post())
    go_on.set()

    assert kept.answer()[0].startswith(b"HTTP/1.1 403 ")
    assert busy.answer()[1] == COMPLETION
    assert lane.close_record()["completeness"] == "exact"
    assert len(lane.provider.log) == 1


def test_a_listener_can_move_and_come_back(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    before = lane.port
    free = ports.free()

    lane.put(port=free)

    assert lane.port == free
    assert lane.client(lane.post()).answer()[1] == COMPLETION
    with pytest.raises(ConnectionRefusedError):
        Client(before)


def test_a_key_is_told_to_the_engine_and_to_nobody_else(start_gateway: StartGateway) -> None:
    process = start_gateway()
    put(process, "keyed", upstream_api_key="sk-known-to-the-gateway")
    put(process, "bare")
    lock = process.files.root.parent / "engine.lock"

    nobody = process.ask("GET", "/v1/listeners/keyed/key")
    lock.write_text("1\n")
    another = process.ask("GET", "/v1/listeners/keyed/key")
    lock.write_text(f"{os.getpid()}\n")

    assert (403, "not_the_engine") == (nobody[0], nobody[1]["error"])
    assert nobody == another
    assert (200, {"upstream_api_key": "sk-known-to-the-gateway"}) == process.ask(
        "GET", "/v1/listeners/keyed/key"
    )
    assert (200, {"upstream_api_key": None}) == process.ask("GET", "/v1/listeners/bare/key")
    assert 404 == process.ask("GET", "/v1/listeners/never/key")[0]
    assert "sk-known" not in json.dumps(process.ask("GET", "/v1/status")[1]) + process.log.read_text()


def test_progress_tells_of_each_write(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    connection = UnixConnection(lane.gateway.files.admin)
    connection.request("GET", "/v1/progress")
    stream = connection.getresponse()
    first = json.loads(stream.readline())

    lane.client(lane.post()).answer()

    told = first
    end = eventually(lambda: lane.gateway.records(journal.CLOSE))[-1].end
    while told["offset"] < end:
        told = json.loads(stream.readline())
    assert told["segment"] == 1
    connection.close()


def test_a_lent_socket_outlives_the_gateway_and_serves_the_next(
    start_gateway: StartGateway,
    make_lane: MakeLane,
    tmp_path: Path,
) -> None:
    first = start_gateway()
    lane = make_lane(always(sized(COMPLETION)), on=first)
    endpoint, connection = lending.borrow(first.files.lend, lane.instance)
    keeper = Keeper(tmp_path / "keeper.sock", endpoint)

    first.process.kill()
    first.process.wait(20)
    queued = lane.client(lane.post())  # nobody accepts it now
    second = start_gateway()
    status, answer = second.ask(
        "PUT",
        f"/v1/listeners/{lane.instance}",
        {
            "name": "a",
            "port": lane.port,
            "upstream": lane.upstream,
            "grants": [{"run_id": "r", "token": lane.token}],
            "borrow_from": str(keeper.path),
        },
    )

    assert (status, answer) == (200, {"port": lane.port})
    assert queued.answer()[1] == COMPLETION
    assert connection.recv(1) == b""
    keeper.close()


def test_a_keeper_that_is_gone_is_no_obstacle(gateway: Gateway, tmp_path: Path) -> None:
    assert put(gateway, "alone", borrow_from=str(tmp_path / "nobody.sock"))[0] == 200
    gateway.ask("DELETE", "/v1/listeners/alone")


def test_a_stop_does_not_wait_for_the_hung_keeper_of_another(make_lane: MakeLane, tmp_path: Path) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    path = tmp_path / "hung.sock"
    with unix_socket.bind(path) as hung:  # accepts, in the kernel, and says nothing
        order: list[str] = []

        def slow() -> None:
            put(lane.gateway, "slow", borrow_from=str(path))
            order.append("slow")

        waiting = threading.Thread(target=slow)
        waiting.start()
        asking, _ = hung.accept()

        lane.put(grants=[])
        order.append("stop")

        asking.close()
        waiting.join(20)
    assert ["stop", "slow"] == order
    assert b"403" == lane.client(lane.post()).answer()[0].split(b" ")[1]
    lane.gateway.ask("DELETE", "/v1/listeners/slow")


def test_borrowers_are_told_when_a_listener_goes(gateway: Gateway) -> None:
    put(gateway, "lent")
    endpoint, connection = lending.borrow(gateway.files.lend, "lent")

    gateway.ask("DELETE", "/v1/listeners/lent")

    connection.settimeout(20)
    assert connection.recv(1) == b""
    endpoint.close()


def test_what_is_not_there_is_not_lent(gateway: Gateway) -> None:
    with pytest.raises(lending.LendingRefused, match="no listener of instance nobody"):
        lending.borrow(gateway.files.lend, "nobody")


@pytest.mark.parametrize(
    "nonsense", [b"\n", b"{}\n", b'{"op": "steal"}\n', b"[1]\n", b"\xff\n", b"x" * 10_000]
)
def test_nonsense_on_the_lend_socket_is_refused(gateway: Gateway, nonsense: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(gateway.files.lend))
        client.sendall(nonsense)
        assert b'"ok": false' in client.recv(4096)


def test_a_drained_gateway_makes_way_at_once_for_the_next(
    start_gateway: StartGateway,
    make_lane: MakeLane,
) -> None:
    first = start_gateway()
    lane = make_lane(always(sized(COMPLETION)), on=first)
    lane.client(lane.post()).answer()

    assert first.ask("POST", "/v1/drain", {"timeout_s": 5})[0] == 200

    assert first.process.wait(20) == 0
    second = start_gateway()
    assert second.ask("GET", "/v1/status")[1]["listeners"] == {}
    assert len(list(second.files.journals.iterdir())) == 2


def test_a_bad_switch_is_said_and_nothing_starts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kt_addons", "--state-dir", str(tmp_path / "state")]

    told = subprocess.run(
        command,
        env={**os.environ, "KT_FAILPOINT": "nowhere"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert told.returncode != 0
    assert "KT_FAILPOINT='nowhere'" in told.stderr
    assert not (tmp_path / "state").exists()


class Keeper:
    """Lends one socket, as a keeper does."""

    def __init__(self, path: Path, endpoint: socket.socket) -> None:
        self.path = path
        self._endpoint = endpoint
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        threading.Thread(target=self._lend, daemon=True).start()

    def _lend(self) -> None:
        try:
            self._connection, _ = self._server.accept()
            self._connection.recv(4096)
            lending.lend(self._connection, self._endpoint)
        except OSError:
            pass

    def close(self) -> None:
        self._server.close()
        self._endpoint.close()
