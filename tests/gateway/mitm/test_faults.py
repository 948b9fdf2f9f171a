"""What goes wrong on the way: each a row with its reason, none taken for an end, none forwarded for nobody."""

import socket
import threading
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import Client, Lane, eventually
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
STREAM = b'{"model":"m-1","stream":true,"stream_options":{"include_usage":true}}'


def cut_after(data: bytes, *, reset: bool = False) -> Callable[[Asked, Wire], bool]:
    def script(_: Asked, wire: Wire) -> bool:
        wire.send(data)
        if reset:
            wire.reset()
        return False

    return script


@pytest.mark.parametrize("reset", [False, True])
def test_a_cut_stream_resets_the_agent_and_is_recorded(make_lane: MakeLane, reset: bool) -> None:
    lane = make_lane(cut_after(SSE_HEAD + chunks(event("a"), end=b""), reset=reset))

    data, how = lane.client(lane.post(STREAM)).rest()

    assert how == "reset"
    assert not data.endswith(b"0\r\n\r\n")
    close = lane.close_record()
    assert (close["completeness"], close["reason"], close["sent"]) == ("unknown", "upstream_cut", "yes")


def test_the_bytes_before_a_cut_still_reach_the_agent(make_lane: MakeLane) -> None:
    lane = make_lane(cut_after(SSE_HEAD + chunks(event("a"), event("b"), end=b"")))

    data, _ = lane.client(lane.post(STREAM)).rest()

    assert event("a") in data
    assert event("b") in data


def test_a_stream_that_ends_in_mid_sentence_is_not_given_an_end(make_lane: MakeLane) -> None:
    lane = make_lane(always(SSE_HEAD + chunks(event("a"))))

    data, how = lane.client(lane.post(STREAM)).rest()

    assert how == "reset"
    assert not data.endswith(b"0\r\n\r\n")
    assert lane.close_record()["reason"] == "no_terminal_event"


def test_a_close_delimited_stream_without_its_last_event_is_not_given_an_end(make_lane: MakeLane) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    lane = make_lane(cut_after(head + event("a")))

    _, how = lane.client(lane.post(STREAM)).rest()

    assert how == "reset"
    assert lane.close_record()["reason"] == "no_terminal_event"


def test_a_sized_answer_that_falls_short_resets_the_agent(make_lane: MakeLane) -> None:
    lane = make_lane(cut_after(sized(COMPLETION)[:-10]))

    _data, how = lane.client(lane.post()).rest()

    assert how == "reset"
    assert lane.close_record()["reason"] == "upstream_cut"


def test_a_provider_that_hangs_up_without_a_word_is_never_asked_twice(make_lane: MakeLane) -> None:
    answers = iter([sized(COMPLETION), b""])

    def once(_: Asked, wire: Wire) -> bool:
        answer = next(answers)
        wire.send(answer)
        return bool(answer)

    lane = make_lane(once)
    client = lane.client(lane.post())
    client.answer()

    client.send(lane.post())

    assert client.rest() == (b"", "reset")
    assert len(lane.provider.log) == 2
    closes = lane.wait_records(journal.CLOSE, 2)
    assert (closes[1]["reason"], closes[1]["sent"]) == ("upstream_cut", "yes")


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nfolded: a\r\n b\r\n\r\n",
    ],
)
def test_an_answer_that_is_not_http_becomes_a_502(make_lane: MakeLane, garbage: bytes) -> None:
    lane = make_lane(always(garbage))

    data, how = lane.client(lane.post()).rest()

    assert data.startswith(b"HTTP/1.1 502 ")
    assert b"upstream_broken" in data
    assert how == "end"
    close = lane.close_record()
    assert (close["reason"], close["sent"]) == ("upstream_cut", "yes")


def test_a_bad_chunk_in_an_answer_resets_the_agent(make_lane: MakeLane) -> None:
    lane = make_lane(always(SSE_HEAD + chunks(event("a"), end=b"") + b"zz\r\n"))

    assert lane.client(lane.post(STREAM)).rest()[1] == "reset"
    assert lane.close_record()["reason"] == "upstream_cut"


def test_more_bytes_than_an_answer_announced_are_no_answer_to_the_next_request(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION) + sized(b"smuggled")))
    client = lane.client(lane.post() + lane.post())

    bodies = [client.answer()[1], client.answer()[1]]

    assert bodies == [COMPLETION, COMPLETION]
    assert [asked.connection for asked in lane.provider.log] == [1, 2]


def test_an_unreachable_provider_is_a_502_and_nothing_was_sent(make_lane: MakeLane) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    lane = make_lane(always(b""), upstream=f"http://127.0.0.1:{port}/v1")
    client = lane.client(lane.post() + lane.get("/.kt/probe"))

    head, body = client.answer()

    assert head.startswith(b"HTTP/1.1 502 ")
    assert b"upstream_unreachable" in body
    assert client.answer()[0].startswith(b"HTTP/1.1 204")
    close = lane.close_record()
    assert (close["sent"], close["reason"], close["status"]) == ("no", "upstream_unreachable", 502)


def test_a_name_that_does_not_resolve_is_a_502(make_lane: MakeLane) -> None:
    lane = make_lane(always(b""), upstream="http://no-such-host.invalid/v1")

    head, _ = lane.client(lane.post()).answer()

    assert head.startswith(b"HTTP/1.1 502 ")
    assert lane.close_record()["sent"] == "no"


def test_an_agent_that_leaves_in_mid_stream_takes_the_provider_connection_with_it(
    make_lane: MakeLane,
) -> None:
    left = threading.Event()

    def endless(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a"), end=b""))
        wire.gone()
        left.set()
        return False

    lane = make_lane(endless)
    client = lane.client(lane.post(STREAM))
    client.until(event("a"))

    client.close()

    assert left.wait(20)
    close = lane.close_record()
    assert (close["reason"], close["completeness"]) == ("client_gone", "unknown")


@pytest.mark.parametrize("leave", [Client.close, Client.reset])
def test_usage_that_follows_the_finish_reason_is_read_though_the_agent_has_left(
    make_lane: MakeLane, leave: Callable[[Client], None]
) -> None:
    agent_left = threading.Event()

    def late_usage(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a", finish=True), end=b""))
        agent_left.wait(20)
        wire.send(chunks(USAGE_EVENT, DONE))
        return True

    lane = make_lane(late_usage)
    client = lane.client(lane.post(STREAM))
    client.until(event("a", finish=True))

    leave(client)
    agent_left.set()

    close = lane.close_record()
    assert close["completeness"] == "exact"
    assert close["counts"]["output"] == 2


def test_reading_on_for_the_usage_ends_after_two_seconds(make_lane: MakeLane) -> None:
    def never(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a", finish=True), end=b""))
        return not wire.gone()

    lane = make_lane(never)
    client = lane.client(lane.post(STREAM))
    client.until(event("a", finish=True))

    client.close()

    assert lane.close_record()["reason"] == "client_gone"


def test_an_agent_that_leaves_after_done_leaves_an_exact_row(make_lane: MakeLane) -> None:
    def slow_end(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a", finish=True), USAGE_EVENT, DONE, end=b""))
        return not wire.gone()

    lane = make_lane(slow_end)
    client = lane.client(lane.post(STREAM))
    client.until(DONE)

    client.close()

    assert lane.close_record()["completeness"] == "exact"
    eventually(lambda: lane.gateway.ask("GET", "/v1/status")[1]["in_flight"] == 0)


def test_a_queued_request_whose_sender_has_left_is_not_forwarded(make_lane: MakeLane) -> None:
    answering, go_on = threading.Event(), threading.Event()

    def gated(_: Asked, wire: Wire) -> bool:
        answering.set()
        go_on.wait(20)
        wire.send(sized(COMPLETION))
        return True

    lane = make_lane(gated)
    client = lane.client(lane.post() + lane.post())
    assert answering.wait(20)

    client.close()
    go_on.set()

    assert lane.close_record()["completeness"] == "exact"  # it had left, and was paid for
    assert len(lane.provider.log) == 1


def test_a_request_that_was_sent_and_abandoned_before_we_looked_is_not_forwarded(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    lane.gateway.process.send_signal(19)  # SIGSTOP: the request waits in the listening queue
    try:
        lane.client(lane.post()).close()
    finally:
        lane.gateway.process.send_signal(18)

    local = lane.wait_records(journal.LOCAL)[0]

    assert (local["reason"], local["sent"], local["method"]) == ("client_gone_before_send", "no", "POST")
    assert lane.provider.log == []


def test_an_agent_that_leaves_while_it_uploads_leaves_a_row(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))

    lane.client(lane.post()[:-5]).close()

    assert lane.wait_records(journal.LOCAL)[0]["reason"] == "client_gone_before_send"
    assert lane.provider.log == []


def test_a_passing_upload_that_is_cut_is_not_completed(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(b"ok")))

    client = lane.client(lane.post(b"x" * 5000, path="/v1/files")[:-1])
    eventually(lambda: lane.records(journal.OPEN))
    client.close()

    close = lane.close_record()
    assert (close["reason"], close["sent"]) == ("client_gone", "yes")
    assert lane.provider.log == []
    assert close["request_bytes"] == 4999
