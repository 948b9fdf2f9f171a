"""Bodies of any size in constant memory, whoever is slow."""

import hashlib
import socket
import threading
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import Gateway, Lane, eventually
from tests.gateway.mitm.provider import Asked, Wire, always, sized

from kt_ledger import journal

MakeLane = Callable[..., Lane]
MIB = 1 << 20
SIZE = 200 * MIB
ALLOWED_GROWTH = 12 * MIB
PIECE = bytes(range(256)) * 256


@pytest.mark.chaos
@pytest.mark.long
def test_200_mb_each_way_pass_in_constant_memory(
    start_gateway: Callable[..., Gateway], make_lane: MakeLane
) -> None:
    gateway = start_gateway()
    hashes = [hashlib.md5(), hashlib.md5()]

    def swallow_and_pour(head: bytes, wire: Wire) -> bool:
        left = SIZE - len(wire.buffer)
        hashes[0].update(wire.buffer)
        while left:
            data = wire.endpoint.recv(1 << 18)
            hashes[0].update(data)
            left -= len(data)
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % SIZE)
        for _ in range(SIZE // len(PIECE)):
            wire.send(PIECE)
        return False

    lane = make_lane(always(b""), head_script=swallow_and_pour, on=gateway)
    lane.client(lane.get("/.kt/probe")).answer()
    before = gateway.rss_bytes()
    client = lane.client(lane.post(path="/v1/files").partition(b"Content-Length")[0])
    client.send(b"Content-Length: %d\r\n\r\n" % SIZE)
    for _ in range(SIZE // len(PIECE)):
        client.send(PIECE)
    client.until(b"\r\n\r\n")
    got = len(client.buffer)
    hashes[1].update(client.buffer)
    peak = gateway.rss_bytes()
    while got < SIZE:
        data = client.endpoint.recv(1 << 18)
        hashes[1].update(data)
        got += len(data)
        peak = max(peak, gateway.rss_bytes())

    wanted = hashlib.md5()
    for _ in range(SIZE // len(PIECE)):
        wanted.update(PIECE)
    assert [each.hexdigest() for each in hashes] == [wanted.hexdigest()] * 2
    assert peak - before < ALLOWED_GROWTH
    close = lane.close_record()
    assert (close["request_bytes"], close["response_bytes"]) == (SIZE, SIZE)


def test_a_reader_that_stops_reading_stops_the_provider(
    start_gateway: Callable[..., Gateway], make_lane: MakeLane
) -> None:
    gateway = start_gateway()
    poured = 0
    stalled = threading.Event()

    def pour(_: Asked, wire: Wire) -> bool:
        nonlocal poured
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % SIZE)
        wire.endpoint.settimeout(1.0)
        try:
            while poured < SIZE:
                poured += wire.endpoint.send(PIECE)
        except TimeoutError:
            stalled.set()
        return False

    lane = make_lane(pour, on=gateway)
    before = gateway.rss_bytes()
    client = lane.client(lane.get("/v1/files/x"))

    assert stalled.wait(20)
    assert gateway.rss_bytes() - before < ALLOWED_GROWTH
    assert poured < 40 * MIB
    client.close()


def test_pipelined_bytes_are_not_hoarded(start_gateway: Callable[..., Gateway], make_lane: MakeLane) -> None:
    gateway = start_gateway()
    go_on = threading.Event()

    def gated(_: Asked, wire: Wire) -> bool:
        go_on.wait(20)
        wire.send(sized(b"{}"))
        return True

    lane = make_lane(gated, on=gateway)
    client = lane.client(lane.post())
    lane.provider.wait_for(1)
    before = gateway.rss_bytes()
    client.endpoint.settimeout(0.5)
    sent = 0
    try:
        while sent < SIZE:
            sent += client.endpoint.send(lane.post(b" " * 60_000))
    except TimeoutError:
        pass

    assert sent < 40 * MIB
    assert gateway.rss_bytes() - before < ALLOWED_GROWTH
    go_on.set()
    client.endpoint.shutdown(socket.SHUT_RDWR)
    eventually(lambda: gateway.ask("GET", "/v1/status")[1]["in_flight"] == 0)
    assert lane.records(journal.CLOSE)
