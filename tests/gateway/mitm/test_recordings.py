"""Recorded answers of real providers through a real gateway process: the same bytes, and the row that the reader says.

What the reader says of each is compared with what its provider reports in tests/corpus.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.corpus.recordings import CORPUS, Key, body_of, path_of, read, records
from tests.gateway.mitm.gateway import Client, Gateway, Lane
from tests.gateway.mitm.provider import Asked, Provider, Wire

from kt_ledger import journal

SAMPLE = 120
ASKED = b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}'
SAID = ("completeness", "reason", "counts", "model", "raw_usage", "family", "status", "reported_cost_nanousd")

Recorded = list[tuple[Key, dict[str, Any]]]


def headers_of(record: dict[str, Any]) -> bytes:
    """Return what the reader goes by, and nothing that frames."""
    given = {name.lower(): value for name, value in record["response_headers"].items()}
    lines = b"content-type: %b\r\n" % given["content-type"].encode() if given.get("content-type") else b""
    if record["body_encoding"] not in ("identity", "", None):
        lines += b"content-encoding: %b\r\n" % record["body_encoding"].encode()
    return lines


def replaying(chosen: Recorded) -> Callable[[Asked, Wire], bool]:
    """A provider that answers with the recording whose number it is asked for."""

    def answer(asked: Asked, wire: Wire) -> bool:
        _, record = chosen[int(asked.values(b"x-kt-record")[0])]
        body = body_of(record)
        head = b"HTTP/1.1 %d Recorded\r\n%b" % (record["status"], headers_of(record))
        if not record["stream"]:
            wire.send(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            return True
        wire.send(head + b"transfer-encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 777):
            piece = body[at : at + 777]
            wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        wire.send(b"0\r\n\r\n")
        return True

    return answer


def check(gateway: Gateway, make_provider: Callable[..., Provider], chosen: Recorded, name: str) -> None:
    provider = make_provider(replaying(chosen))
    lane = Lane(gateway, provider, name, f"http://127.0.0.1:{provider.port}")
    client: Client | None = None
    wrong = []

    for number, (key, record) in enumerate(chosen):
        body, heard = read(key, record, "whole")
        client = client or lane.client()
        more = b"Content-Type: application/json\r\nx-kt-record: %d\r\n" % number
        client.send(lane.post(ASKED, path=path_of(record), more=more))
        try:
            got = client.answer()[1]
        except (EOFError, ConnectionResetError):
            client, got = None, body if not heard.cleanly else b"cut"  # a stream without an end is reset
        if got != body:
            wrong.append((key, len(body), len(got)))

    assert wrong == []
    rows = lane.wait_records(journal.CLOSE, count=len(chosen))
    for (key, record), row in zip(chosen, rows, strict=True):
        _, heard = read(key, record, "whole")
        assert {n: heard.close.get(n) for n in SAID} == {n: row.get(n) for n in SAID}, key


needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this repository")


def all_recorded() -> Recorded:
    return [(key, record) for key, record in records() if record["status"] >= 200]


@needs_corpus
def test_recordings_pass_through_the_gateway_as_they_are(
    gateway: Gateway, make_provider: Callable[..., Provider]
) -> None:
    small = [(key, record) for key, record in all_recorded() if record["body_len"] < 20_000]

    check(gateway, make_provider, random.Random(5).sample(small, SAMPLE), "i-recordings")


@pytest.mark.chaos
@pytest.mark.long
@needs_corpus
def test_all_recordings_pass_through_the_gateway_as_they_are(
    gateway: Gateway, make_provider: Callable[..., Provider]
) -> None:
    check(gateway, make_provider, all_recorded(), "i-all-recordings")
