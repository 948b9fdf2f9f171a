"""A Run whose grant is withdrawn: nothing more of it leaves, whatever had begun."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.gateway.mitm.gateway import DEADLINE_S, Lane, eventually
from tests.gateway.mitm.provider import COMPLETION, SSE_HEAD, Asked, Wire, always, chunks, event, sized

from kt_ledger import journal

MakeLane = Callable[..., Lane]
FORMER = "A-token_of_43_characters_like_all_of_ours-0"
KEY = "sk-of-the-provider"


def stopped(answer: tuple[bytes, bytes]) -> bool:
    head, body = answer
    return b"403" == head.split(b" ")[1] and "instance_stopped" == json.loads(body)["error"]["code"]


def test_a_request_whose_body_was_under_way_does_not_leave(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    request = lane.post()
    client = lane.client(request[:-4])
    eventually(lambda: lane.gateway.ask("GET", "/v1/status")[1]["in_flight"])

    lane.put(grants=[])
    client.send(request[-4:])

    assert stopped(client.answer())
    assert [] == lane.provider.log
    row = lane.wait_records(journal.LOCAL)[0]
    assert ("instance_stopped", f"run-of-{lane.instance}") == (row["reason"], row["run"])


@contextlib.contextmanager
def deaf_provider() -> Iterator[tuple[str, socket.socket, list[socket.socket]]]:
    """A listening socket whose queue is full: a further connection is made once somebody accepts (listen(2))."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.create_connection(listener.getsockname())]
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", listener, waiting
        for one in waiting:
            one.close()


def test_a_request_that_was_connecting_does_not_leave(make_lane: MakeLane) -> None:
    with deaf_provider() as (url, listener, waiting):
        lane = make_lane(always(b""), upstream=url)
        client = lane.client(lane.post())
        lane.wait_records(journal.OPEN)

        lane.put(grants=[])
        first, _ = listener.accept()
        waiting.append(first)
        second, _ = listener.accept()  # the gateway's own, which the kernel tries again

        assert stopped(client.answer())
        second.settimeout(DEADLINE_S)
        client.close()
        assert b"" == second.recv(1)
        second.close()
    row = lane.close_record()
    assert ("no", "instance_stopped", 403) == (row["sent"], row["reason"], row["status"])
    assert [] == lane.records(journal.SENT)


def test_a_connection_of_an_ended_run_gets_no_further_call(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    client = lane.client(lane.post())
    assert COMPLETION == client.answer()[1]

    lane.put(grants=[])
    client.send(lane.post())

    assert stopped(client.answer())
    assert 1 == len(lane.provider.log)


@pytest.mark.parametrize("auth", ["token", "none"])
@pytest.mark.parametrize("upstream_path", ["/v1", ""])
@pytest.mark.parametrize(  # without a key of ours headers are the provider's own and say nothing of Runs
    ("carrier", "key"), [("path", None), ("path", KEY), ("bearer", KEY), ("x-api-key", KEY)]
)
def test_the_token_of_an_ended_run_never_calls_for_the_next(
    make_lane: MakeLane, auth: str, key: str | None, upstream_path: str, carrier: str
) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    lane.upstream = f"http://127.0.0.1:{lane.provider.port}{upstream_path}"
    rules = {"listener_auth": auth, "upstream_api_key": key}
    second = {"run_id": "second", "token": "B" + FORMER[1:]}
    lane.put(grants=[{"run_id": "first", "token": FORMER}], **rules)
    lane.token = FORMER
    header = {"bearer": f"Authorization: Bearer {FORMER}\r\n", "x-api-key": f"x-api-key: {FORMER}\r\n"}
    request = lane.post(more=header.get(carrier, "").encode())
    if carrier != "path":
        request = request.replace(f"/{FORMER}/v1".encode(), b"/v1", 1)
    client = lane.client(request)
    assert COMPLETION == client.answer()[1]

    lane.put(grants=[second], **rules)
    client.send(request)

    assert b"401" == client.answer()[0].split(b" ")[1]
    assert 1 == len(lane.provider.log)
    assert {"first"} == {row["run"] for row in lane.records(journal.OPEN)}


def test_an_answer_under_way_is_given_and_recorded_for_the_run_that_asked(make_lane: MakeLane) -> None:
    more = threading.Event()

    def script(_: Asked, wire: Wire) -> bool:
        assert more.wait(DEADLINE_S)
        wire.send(sized(COMPLETION))
        return True

    lane = make_lane(script)
    client = lane.client(lane.post())
    lane.provider.wait_for(1)

    lane.put(grants=[])
    more.set()

    assert COMPLETION == client.answer()[1]
    row = lane.close_record()
    assert ("exact", f"run-of-{lane.instance}") == (row["completeness"], row["run"])


@pytest.mark.parametrize("how", ["close", "reset"])
def test_an_answer_in_one_piece_is_read_to_its_usage_though_its_agent_was_ended(
    make_lane: MakeLane, how: str
) -> None:
    more = threading.Event()

    def script(_: Asked, wire: Wire) -> bool:
        assert more.wait(DEADLINE_S)
        wire.send(sized(COMPLETION))
        return not wire.gone()

    lane = make_lane(script)
    client = lane.client(lane.post())
    lane.provider.wait_for(1)

    lane.put(grants=[])
    getattr(client, how)()
    stopped(lane.client(lane.post()).answer())  # the gateway has had its turn
    more.set()

    row = lane.close_record()
    assert ("exact", 7, f"run-of-{lane.instance}") == (
        row["completeness"],
        row["counts"]["output"],
        row["run"],
    )


def test_a_stream_whose_agent_was_ended_is_cut_at_once_since_going_on_would_cost(make_lane: MakeLane) -> None:
    cut = threading.Event()

    def script(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a"), end=b""))
        if wire.gone():
            cut.set()
        return False

    lane = make_lane(script)
    client = lane.client(lane.post(b'{"model":"m-1","stream":true}'))
    client.until(event("a"))

    lane.put(grants=[])
    client.reset()

    assert cut.wait(20)
    assert ("unknown", "client_gone") == (lane.close_record()["completeness"], lane.close_record()["reason"])
