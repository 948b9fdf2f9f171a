"""Exchanges as they should be: bytes and records, through a real gateway process."""

import itertools
import json
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import Lane
from tests.gateway.mitm.provider import (
    COMPLETION,
    DONE,
    SSE_HEAD,
    USAGE_EVENT,
    Asked,
    Wire,
    always,
    chunks,
    event,
    sized,
)

from kt_ledger import journal

MakeLane = Callable[..., Lane]


def streaming(*pieces: bytes) -> Callable[[Asked, Wire], bool]:
    return always(SSE_HEAD + chunks(*pieces))


def test_a_call_is_passed_byte_for_byte_and_recorded_exactly(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION, more=b"X-Odd:  two  spaces \r\n")))

    head, body = lane.client(lane.post()).answer()

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nX-Odd: two  spaces\r\n" in head
    assert body == COMPLETION
    close = lane.close_record()
    assert (close["completeness"], close["status"], close["sent"]) == ("exact", 200, "yes")
    assert {unit: close["counts"][unit] for unit in ("input", "output")} == {"input": 5, "output": 7}
    assert f"run-of-{lane.instance}" == close["run"]
    opened = lane.wait_records(journal.OPEN)[0]
    assert close["x"] == opened["x"]
    assert {"/v1/chat/completions"} == {opened["path"], close["path"]}


def test_the_request_reaches_the_provider_with_its_headers_in_order_and_ours_in_place(
    make_lane: MakeLane,
) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    hops = b"Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\n"
    more = b"User-Agent: a/1\r\n" + hops + b"Accept-Encoding: br\r\nAuthorization: Bearer mine\r\n"

    lane.client(lane.post(b'{"model": "m-1"}', more=more)).answer()

    asked = lane.provider.log[0]
    assert asked.line == b"POST /v1/chat/completions HTTP/1.1"
    assert [f"127.0.0.1:{lane.provider.port}".encode()] == asked.values(b"host")
    assert asked.head.index(b"User-Agent: a/1") < asked.head.index(b"Authorization: Bearer mine")
    assert asked.values(b"x-hop") + asked.values(b"connection") == []
    assert asked.values(b"accept-encoding") == [b"identity"]
    assert asked.values(b"content-length") == [b"16"]
    assert asked.body == b'{"model": "m-1"}'
    assert lane.token.encode() not in asked.head


def test_a_stream_without_include_usage_gets_it_and_the_extra_event_is_withheld(make_lane: MakeLane) -> None:
    lane = make_lane(streaming(event("he"), event("llo", finish=True), USAGE_EVENT, DONE))

    _, body = lane.client(lane.post(b'{"model":"m-1","stream":true}')).answer()

    assert event("he") + event("llo", finish=True) + DONE == body
    assert json.loads(lane.provider.log[0].body)["stream_options"] == {"include_usage": True}
    close = lane.close_record()
    assert (close["completeness"], close["stream"]) == ("exact", True)
    assert (close["counts"]["input"], close["counts"]["output"]) == (5, 2)


def test_a_withheld_event_in_a_sized_stream_does_not_leave_the_length_wrong(make_lane: MakeLane) -> None:
    stream = event("hello", finish=True) + USAGE_EVENT + DONE
    lane = make_lane(always(sized(stream, kind=b"text/event-stream")))
    client = lane.client(lane.post(b'{"model":"m-1","stream":true}') + lane.get("/.kt/probe"))

    head, body = client.answer()

    assert b"transfer-encoding: chunked" in head
    assert b"content-length" not in head
    assert event("hello", finish=True) + DONE == body
    assert client.answer()[0].startswith(b"HTTP/1.1 204")


def test_pieces_of_a_stream_are_passed_on_at_once(make_lane: MakeLane) -> None:
    def one_by_one(asked: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a"), end=b""))
        wire.until(b"go on")
        wire.send(chunks(event("b", finish=True), USAGE_EVENT, DONE))
        return True

    lane = make_lane(one_by_one)
    client = lane.client(lane.post(b'{"model":"m-1","stream":true,"stream_options":{"include_usage":true}}'))

    first = client.until(event("a"))

    assert first.endswith(event("a"))
    assert lane.records(journal.CLOSE) == []


def test_a_connection_carries_many_calls_one_after_another(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    client = lane.client()

    for _ in range(3):
        client.send(lane.post())
        assert client.answer()[1] == COMPLETION

    lane.wait_records(journal.CLOSE, 3)
    assert [asked.connection for asked in lane.provider.log] == [1, 1, 1]


def test_pipelined_requests_are_served_in_order_and_one_at_a_time(make_lane: MakeLane) -> None:
    def echo(asked: Asked, wire: Wire) -> bool:
        wire.send(sized(asked.body))
        return True

    lane = make_lane(echo)
    bodies = [b'{"model":"m-%d"}' % number for number in range(5)]
    client = lane.client(b"".join(lane.post(body) for body in bodies))

    answers = [client.answer()[1] for _ in bodies]

    assert bodies == answers
    moments = [(close["opened_at_ns"], close["at_ns"]) for close in lane.wait_records(journal.CLOSE, 5)]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(moments))


def test_an_idle_upstream_connection_that_was_closed_is_opened_anew(make_lane: MakeLane) -> None:
    def once(_: Asked, wire: Wire) -> bool:
        wire.send(sized(COMPLETION))
        return False

    lane = make_lane(once)
    client = lane.client()

    for _ in range(3):
        client.send(lane.post())
        assert client.answer()[1] == COMPLETION

    assert [asked.connection for asked in lane.provider.log] == [1, 2, 3]


def test_a_chunked_request_body_is_understood_and_forwarded(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    start = lane.post().partition(b"Content-Length")[0]
    body = b'{"model":"m-1"}'

    lane.client(start + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(body[:5], body[5:])).answer()

    assert body == lane.provider.log[0].body
    assert len(body) == lane.close_record()["request_bytes"]


def test_an_unmetered_path_passes_with_its_chunked_body_and_trailers(make_lane: MakeLane) -> None:
    trailers = b"0\r\nX-Sum: 1\r\n\r\n"
    lane = make_lane(
        always(
            b"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\ntransfer-encoding: chunked\r\n\r\n"
            + chunks(b"abc", end=trailers)
        )
    )
    start = lane.post(path="/v1/odd").partition(b"Content-Length")[0]
    client = lane.client(start + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(b"xy", b"z"))

    raw = client.until(b"X-Sum: 1\r\n\r\n")

    assert b"\r\nTrailer: X-Sum\r\n" in raw
    assert raw.endswith(b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n")
    assert lane.provider.log[0].body == b"xyz"
    close = lane.close_record()
    assert tuple(close[name] for name in ("completeness", "reason", "request_bytes", "response_bytes")) == (
        "unknown",
        "unmetered_path",
        3,
        3,
    )


@pytest.mark.parametrize(
    ("method", "answer", "head_end"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", b"content-length: 99\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", b"204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n", b"etag: x\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"content-length: 0\r\n\r\n"),
    ],
)
def test_an_answer_without_a_body_ends_with_its_head(
    make_lane: MakeLane, method: str, answer: bytes, head_end: bytes
) -> None:
    lane = make_lane(always(answer))
    client = lane.client(lane.get("/v1/models", method=method) + lane.get("/.kt/probe"))

    head = client.until(b"\r\n\r\n")

    assert head.endswith(head_end)
    assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 204")
    assert lane.close_record()["reason"] == "unmetered_path"


def test_a_close_delimited_answer_becomes_chunked(make_lane: MakeLane) -> None:
    def until_close(_: Asked, wire: Wire) -> bool:
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + COMPLETION)
        return False

    lane = make_lane(until_close)
    client = lane.client(lane.post())

    head, body = client.answer()

    assert b"transfer-encoding: chunked" in head
    assert body == COMPLETION
    assert lane.close_record()["completeness"] == "exact"
    client.send(lane.get("/.kt/probe"))
    assert client.answer()[0].startswith(b"HTTP/1.1 204")


def test_an_http_1_0_client_gets_no_chunks_and_an_end_of_connection(make_lane: MakeLane) -> None:
    lane = make_lane(streaming(COMPLETION))
    client = lane.client(lane.post().replace(b"HTTP/1.1", b"HTTP/1.0"))

    raw, how = client.rest()

    assert b"chunked" not in raw
    assert raw.endswith(b"\r\n\r\n" + COMPLETION)
    assert b"\r\nconnection: close\r\n" in raw
    assert how == "end"


def test_a_collected_body_is_asked_for_with_100_continue(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    head, _, body = lane.post(more=b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    client = lane.client(head + b"\r\n\r\n")

    assert client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(body)

    assert client.answer()[1] == COMPLETION
    assert lane.provider.log[0].values(b"expect") == []


def test_a_body_that_passes_waits_for_the_providers_own_100(make_lane: MakeLane) -> None:
    def continue_first(head: bytes, wire: Wire) -> None:
        assert b"expect: 100-continue" in head.lower()
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")

    lane = make_lane(always(sized(b"ok")), head_script=continue_first)
    head, _, body = lane.post(path="/v1/files", more=b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    client = lane.client(head + b"\r\n\r\n")

    assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
    assert client.until(b"\r\n\r\n") == b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    client.send(body)

    assert client.answer()[1] == b"ok"
    assert body == lane.provider.log[0].body


def test_an_answer_before_the_end_of_the_request_ends_the_connection(make_lane: MakeLane) -> None:
    def refuse(_: bytes, wire: Wire) -> bool:
        wire.send(sized(b"too large", status=b"413 Content Too Large"))
        return False

    lane = make_lane(always(b""), head_script=refuse)
    client = lane.client(lane.post(b"x" * 1000, path="/v1/files")[:-500])

    assert (client.rest()[0][-9:], "end") == (b"too large", "end")
    assert lane.close_record()["status"] == 413


def test_the_provider_key_takes_the_place_of_the_token(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)), upstream_api_key="sk-real")
    placeholder = f"Authorization: Bearer {lane.token}\r\n".encode()
    client = lane.client()

    for start, path in (("/" + lane.token, "/v1/chat/completions"), ("/v1", "/chat/completions")):
        client.send(lane.post(path=path, start=start, more=placeholder))
        assert client.answer()[1] == COMPLETION

    for asked in lane.provider.log:
        assert asked.path == b"/v1/chat/completions"
        assert asked.values(b"authorization") == [b"Bearer sk-real"]
        assert lane.token.encode() not in asked.head


def test_an_own_key_passes_and_the_token_does_not(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    more = f"X-Trace: {lane.token}\r\nAuthorization: Bearer sk-own\r\n".encode()

    lane.client(lane.post(path=f"/v1/chat/completions?key={lane.token}&a=1", more=more)).answer()

    assert lane.provider.log[0].values(b"authorization") == [b"Bearer sk-own"]
    assert lane.provider.log[0].path == b"/v1/chat/completions?a=1"
    assert lane.token.encode() not in lane.provider.log[0].head
