"""Clients that send no more and still read (RFC 9112 section 9.6), and heads that never end."""

import socket
import sys
import threading
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import DEADLINE_S, Client, Gateway, Lane, eventually
from tests.gateway.mitm.provider import (
    COMPLETION,
    SSE_HEAD,
    Asked,
    Wire,
    always,
    chunks,
    event,
    in_two_parts,
    sized,
)

from kt_ledger import journal

MakeLane = Callable[..., Lane]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such a client counts as gone")


def send_last(lane: Lane, data: bytes) -> Client:
    client = lane.client(data)
    client.endpoint.shutdown(socket.SHUT_WR)
    return client


def test_who_shuts_down_its_sending_side_gets_its_answer_and_an_end(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))

    client = send_last(lane, lane.post())

    assert COMPLETION == client.answer()[1]
    assert (b"", "end") == client.rest()
    assert "exact" == lane.close_record()["completeness"]


def test_pipelined_requests_of_such_a_client_are_all_answered(make_lane: MakeLane) -> None:
    lane = make_lane(lambda asked, wire: wire.send(sized(asked.body)) is None)

    client = send_last(lane, b"".join(lane.post(b'{"n":%d}' % number) for number in range(3)))

    assert [b'{"n":0}', b'{"n":1}', b'{"n":2}'] == [client.answer()[1] for _ in range(3)]
    assert (b"", "end") == client.rest()


def test_a_stream_goes_on_to_its_end(make_lane: MakeLane) -> None:
    script, more = in_two_parts()
    lane = make_lane(script)
    client = lane.client(lane.post(b'{"model":"m-1","stream":true}'))
    client.until(event("a"))

    client.endpoint.shutdown(socket.SHUT_WR)
    more.set()

    assert b"[DONE]" in client.until(b"0\r\n\r\n")
    assert (b"", "end") == client.rest()


def test_one_that_leaves_afterwards_takes_the_provider_connection_with_it(make_lane: MakeLane) -> None:
    gone = threading.Event()

    def script(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a"), end=b""))
        if wire.gone():
            gone.set()
        return False

    lane = make_lane(script)
    client = send_last(lane, lane.post(b'{"model":"m-1","stream":true}'))
    client.until(event("a"))

    client.close()

    assert gone.wait(DEADLINE_S)
    assert "client_gone" == lane.close_record()["reason"]


def test_a_held_call_of_such_a_client_is_still_wanted(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)), hold_s=600)
    client = send_last(lane, lane.post())
    eventually(lambda: lane.gateway.ask("GET", "/v1/status")[1]["held"])

    lane.put()

    assert COMPLETION == client.answer()[1]


def test_an_end_in_mid_request_is_a_client_that_left(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))

    client = send_last(lane, lane.post()[:-3])

    assert b"" == client.rest()[0]
    assert "client_gone_before_send" == lane.wait_records(journal.LOCAL)[0]["reason"]
    assert [] == lane.provider.log


@pytest.mark.parametrize("before", [b"", b"whole"])
def test_a_head_that_never_ends_is_given_up(
    start_gateway: Callable[..., Gateway], make_lane: MakeLane, before: bytes
) -> None:
    lane = make_lane(always(sized(COMPLETION)), on=start_gateway("--head-timeout-s", "0.3"))
    idle = lane.client()
    client = lane.client((lane.post() if before else b"") + b"POST /")
    if before:
        assert COMPLETION == client.answer()[1]

    answered, how = client.rest()

    assert answered.startswith(b"HTTP/1.1 408 ") and "end" == how
    assert 408 == lane.wait_records(journal.LOCAL)[0]["status"]
    idle.send(lane.post())  # silence between requests is none of that
    assert COMPLETION == idle.answer()[1]


def test_a_frozen_agent_is_not_blamed_for_half_a_head(
    start_gateway: Callable[..., Gateway], make_lane: MakeLane
) -> None:
    lane = make_lane(always(sized(COMPLETION)), on=start_gateway("--head-timeout-s", "0.3"), hold_s=600)
    request = lane.post()
    client = lane.client(request[:9])
    bystander = make_lane(always(b""), on=lane.gateway).client(b"POST /")

    bystander.rest()  # it began later, and its time is over
    lane.put()
    client.send(request[9:])

    assert COMPLETION == client.answer()[1]


def test_a_pipelined_request_that_lacks_its_end_does_not_outlive_the_others(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))

    client = send_last(lane, lane.post() + lane.post()[:-3])

    assert COMPLETION == client.answer()[1]
    assert b"" == client.rest()[0]
    assert "client_gone_before_send" == lane.wait_records(journal.LOCAL)[0]["reason"]
    assert 1 == len(lane.provider.log)
