"""A paused instance: what has left goes on, what has not is held, and ends in exactly one way."""

import json
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import DEADLINE_S, Gateway, Lane, eventually
from tests.gateway.mitm.provider import (
    COMPLETION,
    always,
    event,
    in_two_parts,
    sized,
)

from kt_gateway.mitm.waiting_room import HELD_LIMIT
from kt_ledger import journal

MakeLane = Callable[..., Lane]
LONG_S = 600


def paused(lane: Lane, hold_s: float = LONG_S) -> Lane:
    lane.put(hold_s=hold_s)
    return lane


def wait_held(lane: Lane, count: int) -> None:
    eventually(lambda: lane.gateway.ask("GET", "/v1/status")[1]["held"] == count)


def test_a_new_call_waits_for_the_resume_and_is_then_passed_whole(make_lane: MakeLane) -> None:
    lane = paused(make_lane(always(sized(COMPLETION))))
    client = lane.client(lane.post(b'{"model":"m-1"}'))
    wait_held(lane, 1)
    assert [] == lane.provider.log

    lane.put()

    assert COMPLETION == client.answer()[1]
    assert [b'{"model":"m-1"}'] == [asked.body for asked in lane.provider.log]
    assert "exact" == lane.close_record()["completeness"]


def test_pipelined_and_kept_connections_go_on_in_order(make_lane: MakeLane) -> None:
    lane = make_lane(lambda asked, wire: wire.send(sized(asked.body)) is None)
    client = lane.client(lane.post(b'{"n":0}'))
    assert b'{"n":0}' == client.answer()[1]
    paused(lane)
    client.send(b"".join(lane.post(b'{"n":%d}' % number) for number in (1, 2, 3)))
    wait_held(lane, 1)

    lane.put()

    assert [b'{"n":1}', b'{"n":2}', b'{"n":3}'] == [client.answer()[1] for _ in range(3)]
    assert 4 == len(lane.provider.log)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/chat/completions", b"403", "instance_paused"),
        ("/v1/responses", b"429", "insufficient_quota"),
        ("/v1/messages", b"403", None),
    ],
)
def test_a_hold_that_nobody_ends_is_refused_for_good(
    make_lane: MakeLane, path: str, status: bytes, code: str | None
) -> None:
    lane = paused(make_lane(always(sized(COMPLETION))), hold_s=0.1)
    client = lane.client(lane.post(path=path) + lane.post(path=path))

    (head, body), (second, _) = client.answer(), client.answer()

    assert status == head.split(b" ")[1] == second.split(b" ")[1]
    assert b"x-should-retry: false" in head and b"retry-after" not in head.lower()
    assert code == json.loads(body)["error"].get("code")
    assert b"kt agent resume" in body
    rows = lane.wait_records(journal.LOCAL, 2)
    assert {("instance_paused", "no", int(status))} == {(r["reason"], r["sent"], r["status"]) for r in rows}
    assert [] == lane.provider.log


def test_a_stop_while_paused_refuses_what_is_held(make_lane: MakeLane) -> None:
    lane = paused(make_lane(always(sized(COMPLETION))))
    client = lane.client(lane.post())
    wait_held(lane, 1)

    lane.put(grants=[])

    head, body = client.answer()
    assert b"403" == head.split(b" ")[1]
    assert "instance_stopped" == json.loads(body)["error"]["code"]
    assert "instance_stopped" == lane.wait_records(journal.LOCAL)[0]["reason"]
    assert [] == lane.provider.log


def test_a_restart_while_paused_does_not_let_the_old_run_call_for_the_new_one(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)), listener_auth="none", hold_s=LONG_S)
    stranger = lane.client(lane.post().replace(f"/{lane.token}/".encode(), b"/"))
    wait_held(lane, 1)

    lane.put(listener_auth="none", grants=[{"run_id": "second", "token": "token-of-the-second"}])

    assert b"401" == stranger.answer()[0].split(b" ")[1]
    assert [] == lane.provider.log


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("unread_bytes", [0, 4 << 20])
def test_a_sender_that_leaves_while_held_is_not_forwarded(
    make_lane: MakeLane, how: str, unread_bytes: int
) -> None:
    lane = paused(make_lane(always(sized(COMPLETION))))
    client = lane.client(lane.post(b"x" * unread_bytes)[: 64 << 10] if unread_bytes else lane.post())
    wait_held(lane, 1)

    getattr(client, how)()

    row = lane.wait_records(journal.LOCAL)[0]
    assert ("client_gone_before_send", "no") == (row["reason"], row["sent"])
    wait_held(lane, 0)
    lane.put()
    assert COMPLETION == lane.client(lane.post()).answer()[1]
    assert 1 == len(lane.provider.log)


def test_a_held_body_stays_with_its_sender(make_lane: MakeLane) -> None:
    lane = paused(make_lane(always(sized(COMPLETION))))
    body = b"b" * (16 << 20)
    before = lane.gateway.rss_bytes()
    client = lane.client()
    rest = memoryview(lane.post(body, path="/v1/files"))
    client.endpoint.settimeout(0.3)

    with pytest.raises(TimeoutError):
        while True:
            rest = rest[client.endpoint.send(rest) :]

    assert rest and lane.gateway.rss_bytes() - before < 4 << 20
    client.endpoint.settimeout(DEADLINE_S)
    lane.put()
    client.endpoint.sendall(rest)
    assert COMPLETION == client.answer()[1]
    assert len(body) == len(lane.provider.log[0].body)


def test_a_sender_that_waits_for_a_100_gets_it_after_the_resume(make_lane: MakeLane) -> None:
    lane = paused(make_lane(always(sized(COMPLETION))))
    head, _, body = lane.post(more=b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    client = lane.client(head + b"\r\n\r\n")
    wait_held(lane, 1)

    lane.put()

    assert b"HTTP/1.1 100 Continue\r\n\r\n" == client.until(b"\r\n\r\n")
    client.send(body)
    assert COMPLETION == client.answer()[1]


def test_a_refused_sender_that_waits_for_a_100_is_hung_up_on(make_lane: MakeLane) -> None:
    lane = paused(make_lane(always(sized(COMPLETION))), hold_s=0.05)
    head, _, _ = lane.post(more=b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")

    answered, how = lane.client(head + b"\r\n\r\n").rest()

    assert answered.startswith(b"HTTP/1.1 403 ") and b"connection: close" in answered
    assert "end" == how


def test_more_than_a_room_holds_are_refused_and_the_others_still_wait(make_lane: MakeLane) -> None:
    lane = paused(make_lane(always(sized(COMPLETION))))
    clients = [lane.client(lane.post()) for _ in range(HELD_LIMIT)]
    wait_held(lane, HELD_LIMIT)

    beyond = lane.client(lane.post()).answer()

    assert b"403" == beyond[0].split(b" ")[1]
    lane.put()
    assert {COMPLETION} == {client.answer()[1] for client in clients}
    assert HELD_LIMIT == len(lane.provider.log)
    for client in clients:
        client.close()


def test_an_answer_under_way_goes_on_at_the_pace_of_its_reader(make_lane: MakeLane) -> None:
    script, more = in_two_parts()
    lane = make_lane(script)
    client = lane.client(lane.post(b'{"model":"m-1","stream":true}'))
    client.until(event("a"))

    paused(lane)
    more.set()

    assert b"[DONE]" in client.until(b"0\r\n\r\n")
    assert 200 == lane.close_record()["status"]


def test_an_upload_under_way_when_the_pause_comes_is_held_before_it_leaves(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    request = lane.post(b'{"model":"m-1"}')
    client = lane.client(request[:-4])
    eventually(lambda: lane.gateway.ask("GET", "/v1/status")[1]["in_flight"])

    paused(lane)
    client.send(request[-4:])
    wait_held(lane, 1)

    assert [] == lane.provider.log
    lane.put()
    assert COMPLETION == client.answer()[1]


def test_a_gateway_that_makes_way_resets_what_it_holds(
    start_gateway: Callable[..., Gateway], make_lane: MakeLane
) -> None:
    lane = paused(make_lane(always(sized(COMPLETION)), on=start_gateway()))
    client = lane.client(lane.post())
    wait_held(lane, 1)

    lane.gateway.ask("POST", "/v1/drain", {"timeout_s": 10})

    assert (b"", "reset") == client.rest()
    assert "gateway_handed_over" == lane.wait_records(journal.LOCAL)[0]["reason"]


@pytest.mark.parametrize("hold_s", [-1, True, float("inf"), 1e9])
def test_a_hold_without_a_sensible_end_is_refused(make_lane: MakeLane, hold_s: float) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    message = {"name": "a", "port": lane.port, "upstream": lane.upstream, "grants": [], "hold_s": hold_s}

    status, answer = lane.gateway.ask("PUT", f"/v1/listeners/{lane.instance}", message)

    assert 400 == status and "hold_s" in answer["message"]
    assert COMPLETION == lane.client(lane.post()).answer()[1]
