"""Feeds an exchange the way a driver does, cut into any pieces, and keeps what it said."""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kt_gateway.exchange.exchange import Exchange, Passage, RequestHead
from kt_ledger.values import Reason

WAYS = ("whole", "byte by byte", "7 bytes", "random cuts")
STARTED_AT_NS = 1_800_000_000_000_000_000


def cut(body: bytes, way: str, *, seed: int = 0) -> list[bytes]:
    """Cut a body; an empty one is no piece at all."""
    if way == "whole":
        return [body] if body else []
    if way == "random cuts":
        sys.stdout.write(f"seed {seed}\n")  # shown where a test fails
        return list(_random_cuts(body, random.Random(seed)))
    size = 1 if way == "byte by byte" else 7
    return [body[at : at + size] for at in range(0, len(body), size)]


def _random_cuts(body: bytes, dice: random.Random) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        size = dice.choice((1, 2, 3, 5, 17, 64, 333, 4096))
        yield body[at : at + size]
        at += size


def new_exchange(
    *,
    path: str = "/v1/chat/completions",
    method: str = "POST",
    headers: dict[str, str] | None = None,
    **more: Any,
) -> Exchange:
    """An exchange that began at a fixed time."""
    given = {"content-type": "application/json"} if headers is None else headers
    head = RequestHead(method, path, "", raw_headers(given))
    return Exchange(
        id="x-1",
        instance_id="i-1",
        run_id="r-1",
        head=head,
        started_at_ns=STARTED_AT_NS,
        started_mono_ns=0,
        **more,
    )


def raw_headers(headers: dict[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


@dataclass
class Heard:
    """What the agent got before and after the record, and the record."""

    before: bytes = b""
    after: bytes = b""
    settled: int = 0
    forwarded: bytes = b""
    close: dict[str, Any] = field(default_factory=dict)
    cleanly: bool = False
    exchange: Exchange | None = None

    @property
    def body(self) -> bytes:
        return self.before + self.after

    def take(self, passage: Passage) -> None:
        """Do what a driver does with a passage."""
        if self.settled:
            self.after += passage.now
        else:
            self.before += passage.now
        if passage.settle:
            self.settled += 1
        assert passage.settle or not passage.held
        assert self.exchange is not None
        if not passage.settle or self.exchange.ended_cleanly:
            self.after += passage.held


def feed(
    exchange: Exchange,
    pieces: list[bytes],
    *,
    request: bytes = b'{"model":"m","messages":[]}',
    status: int = 200,
    headers: dict[str, str] | None = None,
    end: str = "clean",
    marks_last: bool = False,
) -> Heard:
    """Run one exchange: `end` is "clean" or the Reason that it fails with; `marks_last` as for a sized body."""
    heard = Heard(exchange=exchange)
    if exchange.wants_body:
        heard.forwarded = exchange.collected(request)
    else:
        exchange.request_passed(len(request))
    exchange.sent()
    exchange.response_head(
        status=status, headers=raw_headers(headers or {"content-type": "text/event-stream"}), mono_ns=5
    )
    for number, piece in enumerate(pieces):
        last = marks_last and end == "clean" and number == len(pieces) - 1
        heard.take(exchange.response_data(piece, last=last, mono_ns=10 + number))
    if end == "clean":
        heard.take(exchange.response_end(mono_ns=1000))
    else:
        heard.take(exchange.failed(Reason(end), mono_ns=1000))
    heard.cleanly = exchange.ended_cleanly
    heard.close = exchange.close_fields(at_ns=STARTED_AT_NS + 2000, mono_ns=2000)
    return heard
