"""The order of things: on record before anything leaves, durable before an end is released, whole after a kill."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.gateway.mitm.gateway import Gateway, Lane, eventually
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
StartGateway = Callable[..., Gateway]
STREAM = b'{"model":"m-1","stream":true,"stream_options":{"include_usage":true}}'
SLOW_MS = 700
JSON_HEAD = SSE_HEAD.replace(b"text/event-stream", b"application/json")


@pytest.fixture(scope="module")
def slow_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose disk is slow, for all that look at one call at a time."""
    running = Gateway(tmp_path_factory.mktemp("slow") / "state", KT_SLOW_SYNC_MS=str(SLOW_MS)).started()
    yield running
    running.close()


@pytest.mark.parametrize(
    ("answer", "request_body", "before", "end"),
    [
        (
            SSE_HEAD + chunks(event("a", finish=True), USAGE_EVENT, DONE),
            STREAM,
            event("a", finish=True),
            b"[DONE]",
        ),
        (sized(COMPLETION), b"{}", b"", COMPLETION[-5:]),
        (
            SSE_HEAD.replace(b"text/event-stream", b"application/json") + chunks(COMPLETION),
            b"{}",
            b"",
            b"\r\n0\r\n\r\n",
        ),
    ],
    ids=["stream", "sized", "chunked JSON"],
)
def test_the_end_waits_for_a_slow_disk_and_what_comes_before_does_not(
    slow_gateway: Gateway,
    make_lane: MakeLane,
    answer: bytes,
    request_body: bytes,
    before: bytes,
    end: bytes,
) -> None:
    lane = make_lane(always(answer), on=slow_gateway)
    client = lane.client(lane.post(request_body))
    lane.provider.wait_for(1)

    client.endpoint.settimeout(SLOW_MS / 1000 / 2)
    if before:
        client.until(before)
    early = b""
    with pytest.raises(TimeoutError):
        while True:
            early += client.endpoint.recv(1 << 16)
    client.endpoint.settimeout(20)

    client.buffer += early
    assert end not in client.buffer
    assert len(lane.records(journal.CLOSE)) == 1
    client.until(end)


def test_an_answer_without_a_body_waits_with_its_head(slow_gateway: Gateway, make_lane: MakeLane) -> None:
    lane = make_lane(always(b"HTTP/1.1 204 No Content\r\n\r\n"), on=slow_gateway)
    client = lane.client(lane.get("/v1/models"))
    lane.provider.wait_for(1)

    client.endpoint.settimeout(SLOW_MS / 1000 / 2)
    with pytest.raises(TimeoutError):
        client.endpoint.recv(1)
    client.endpoint.settimeout(20)

    assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 204")


def test_one_waiting_stream_does_not_hold_the_others(slow_gateway: Gateway, make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)), on=slow_gateway)
    waiting = lane.client(lane.post())
    eventually(lambda: lane.records(journal.CLOSE))

    head, _ = lane.client(lane.get("/.kt/probe")).answer()

    assert head.startswith(b"HTTP/1.1 204")
    waiting.endpoint.settimeout(0)
    with pytest.raises(BlockingIOError):
        waiting.endpoint.recv(1)


def test_many_waiters_share_a_sync(start_gateway: StartGateway, make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)), on=start_gateway(KT_SLOW_SYNC_MS="400"))
    clients = [lane.client(lane.post()) for _ in range(20)]

    done = threading.Event()
    timer = threading.Timer(20 * 0.4 / 2, done.set)
    timer.start()
    for client in clients:
        client.answer()

    assert not done.is_set()
    timer.cancel()


def test_the_record_is_open_before_the_provider_hears_of_the_call(make_lane: MakeLane) -> None:
    seen: list[int] = []

    def look(_: bytes, wire: Wire) -> None:
        seen.append(len(lane.records(journal.OPEN)))

    lane = make_lane(always(sized(COMPLETION)), head_script=look)

    lane.client(lane.post()).answer()

    assert seen == [1]


@pytest.mark.parametrize(
    ("point", "reached", "types"),
    [
        ("before_open_record", 0, []),
        ("after_open_record", 0, [journal.OPEN]),
        ("mid_stream", 1, [journal.OPEN, journal.SENT]),
        ("before_close_record", 1, [journal.OPEN, journal.SENT]),
        ("before_close_sync", 1, [journal.OPEN, journal.SENT, journal.CLOSE]),
        ("after_close_sync", 1, [journal.OPEN, journal.SENT, journal.CLOSE]),
    ],
)
def test_a_killed_gateway_leaves_a_record_of_all_that_left(
    start_gateway: StartGateway, make_lane: MakeLane, point: str, reached: int, types: list[int]
) -> None:
    agent_saw = threading.Event()

    def in_two(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a", finish=True), end=b""))
        agent_saw.wait(20)
        wire.send(chunks(USAGE_EVENT, DONE))
        return True

    gateway = start_gateway(KT_FAILPOINT=point)
    lane = make_lane(in_two, on=gateway)

    client = lane.client(lane.post(STREAM))
    if reached:
        client.until(event("a", finish=True))
    agent_saw.set()
    data, _ = client.rest()

    assert gateway.process.wait(20) == -9
    assert len(lane.provider.log) == reached
    assert b"[DONE]" not in data
    records = [record for record in gateway.records() if record.type != journal.HEADER]
    assert [record.type for record in records] == types
    assert len({record.fields["x"] for record in records}) <= 1


def test_a_failpoint_counts_its_hits(start_gateway: StartGateway, make_lane: MakeLane) -> None:
    gateway = start_gateway(KT_FAILPOINT="after_close_sync:3")
    lane = make_lane(always(sized(COMPLETION)), on=gateway)
    client = lane.client(lane.post() + lane.post() + lane.post())

    assert [client.answer()[1], client.answer()[1]] == [COMPLETION, COMPLETION]
    client.rest()

    assert gateway.process.wait(20) == -9
    assert len(lane.records(journal.CLOSE)) == 3


def test_an_ending_gateway_lets_streams_finish(start_gateway: StartGateway, make_lane: MakeLane) -> None:
    go_on = threading.Event()

    def gated(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a"), end=b""))
        go_on.wait(20)
        wire.send(chunks(event("b", finish=True), USAGE_EVENT, DONE))
        return True

    gateway = start_gateway()
    lane = make_lane(gated, on=gateway)
    client = lane.client(lane.post(STREAM))
    client.until(event("a"))

    gateway.process.terminate()
    eventually(lambda: not gateway.files.admin.exists())
    go_on.set()

    assert DONE in client.rest()[0]
    assert gateway.process.wait(20) == 0
    assert lane.records(journal.CLOSE)[0]["completeness"] == "exact"


def test_a_drain_that_takes_too_long_records_and_resets_what_is_left(
    start_gateway: StartGateway, make_lane: MakeLane
) -> None:
    def endless(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a"), end=b""))
        return not wire.gone()

    gateway = start_gateway()
    lane = make_lane(endless, on=gateway)
    client = lane.client(lane.post(STREAM))
    client.until(event("a"))

    assert gateway.ask("POST", "/v1/drain", {"timeout_s": 0.1})[0] == 200

    assert client.rest()[1] == "reset"
    assert gateway.process.wait(20) == 0
    assert lane.records(journal.CLOSE)[0]["reason"] == "gateway_died"


def test_nothing_secret_is_on_disk(start_gateway: StartGateway, make_lane: MakeLane, tmp_path: Path) -> None:
    gateway = start_gateway()
    lane = make_lane(
        always(sized(COMPLETION, status=b"500 Oops")), on=gateway, upstream_api_key="sk-canary-provider"
    )
    more = b"Authorization: Bearer sk-canary-agent\r\nX-Api-Key: sk-canary-agent\r\n"

    lane.client(lane.post(b'{"model":"m-1","messages":"canary-body"}', more=more)).answer()
    lane.client(lane.post(b"canary-body", path="/v1/odd/canary-path?canary-query", more=more)).answer()
    lane.client(lane.post(start="/canary-token")).answer()
    gateway.stop()

    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (b"sk-canary", b"canary-body", b"canary-token", b"canary-query", lane.token.encode()):
        assert secret not in written
