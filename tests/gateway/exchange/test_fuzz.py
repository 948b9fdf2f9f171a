"""Any bytes, in any dialect, cut anyhow: nothing is raised, nothing is negative, nothing grows, no byte is lost.

Short here; a million bodies in the long run.
"""

import json
import os
import random
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gateway.exchange.feeding import new_exchange, raw_headers

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.table import DIALECTS
from kt_gateway.exchange.exchange import Exchange
from kt_gateway.exchange.sse import EVENT_LIMIT_BYTES
from kt_ledger.journal import CLOSE, frame
from kt_ledger.values import UNITS, Reason

BODIES = int(os.environ.get("KT_FUZZ_BODIES", 1_000_000 if "KT_CHAOS" in os.environ else 1500))
MUTANTS = 19 if BODIES > 10_000 else 4
"""Damaged copies of each body that hypothesis makes: making one costs more than reading a hundred."""
KEPT_LIMIT_BYTES = EVENT_LIMIT_BYTES + 65_536

_BETWEEN = {
    ":": "/publishers/anthropic/models/m",
    "/count-tokens:rawPredict": "/models",
    "/count-tokens": "/model/m",
    "/converse": "/model/m",
    "/invoke": "/model/m",
    "/runs": "/threads/t",
}


def path_of(dialect: Dialect) -> str:
    suffix = dialect.suffixes[0]
    if dialect.pattern is not None and suffix == "/completions":
        return "/prompts/p/completions"
    return "/v1" + _BETWEEN.get(suffix[:1] if suffix[0] == ":" else suffix, "") + suffix


def words_of(dialect: Dialect) -> list[str]:
    shape = dialect.shape
    paths = (
        path
        for unit in (*UNITS, "input", "output", "total", "cache_write")
        for path in getattr(shape, unit, ())
    )
    return sorted({name for path in paths for name in path} | set(dialect.members) | set(dialect.inside))


NUMBERS = st.sampled_from(
    [
        0,
        1,
        3,
        250,
        -1,
        2**64 - 1,
        2**64,
        1.5,
        float("nan"),
        float("inf"),
        True,
        None,
        "9",
        [],
        {},
        [{"modality": 4}],
    ]
)
KINDS = st.sampled_from(
    [
        "response.completed",
        "response.failed",
        "message_start",
        "message_delta",
        "message_stop",
        "error",
        "transcript.text.done",
        "image_generation.completed",
        "message-end",
        "stream-end",
        "thread.run",
        "completed",
        "queued",
        "compaction",
        "fallback_message",
        "AUDIO",
        "5m",
    ]
)


def documents(dialect: Dialect) -> st.SearchStrategy[Any]:
    names = st.sampled_from(words_of(dialect)) | st.sampled_from(
        [
            "type",
            "usage",
            "choices",
            "delta",
            "message",
            "response",
            "candidates",
            "iterations",
            "object",
            "status",
        ]
    )
    return st.recursive(
        NUMBERS | KINDS,
        lambda inner: st.dictionaries(names, inner, max_size=5) | st.lists(inner, max_size=2),
        max_leaves=12,
    )


FRAMES = st.sampled_from(
    [
        "data: %s\n\n",
        "data:%s\r\n\r\n",
        "event: message_stop\ndata: %s\n\n",
        "%s\n",
        "[%s,\n",
        "%s]",
        "%s",
        ": %s\r\r",
        "data: %s",
        "data: [DONE]\n\n%s",
    ]
)
JUNK = st.binary(max_size=30) | st.sampled_from(
    [b"\xef\xbb\xbf", b"\r", b"\n", b'{"', b'"\\', b"data: [DO", b"x" * 70_000, b"[" * 3000, b"\0\0"]
)
HEADERS = st.sampled_from(
    [
        "text/event-stream",
        "application/json",
        "application/x-ndjson",
        "",
        "text/plain",
        "audio/mpeg",
        "text/html",
    ]
)
CODINGS = st.sampled_from(["", "", "", "gzip", "deflate", "br", "zstd", "gzip, br", "odd"])
STATUSES = st.sampled_from([200, 200, 200, 200, 206, 302, 400, 422, 429, 500])
ENDS = st.sampled_from(["clean", "clean", "upstream_cut", "client_gone"])
REQUESTS = st.sampled_from([b"{}", b'{"model":"m","stream":true,"input":"abc","n":2}', b"\xff", b"", b"[1]"])


@st.composite
def bodies(draw: st.DrawFn, dialect: Dialect) -> bytes:
    pieces = []
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.integers(0, 3)) == 0:
            pieces.append(draw(JUNK))
        else:
            document = draw(documents(dialect))
            pieces.append((draw(FRAMES) % json.dumps(document)).encode())
    return b"".join(pieces)


def feed_all(exchange: Exchange, body: bytes, setting: "Setting") -> bytes:
    """Do what a driver does; return all that it was given, whether it may be sent or not."""
    request, sizes, end = setting.request, setting.sizes, setting.end
    forwarded = exchange.collected(request)
    assert forwarded == request or exchange.usage_asked_by_us
    exchange.open_fields()
    exchange.sent()
    exchange.response_head(status=setting.status, headers=raw_headers(setting.headers), mono_ns=5)
    given: list[bytes] = []
    at, turn = 0, 0
    while at < len(body):
        size = sizes[turn % len(sizes)]
        last = at + size >= len(body) and end == "clean" and turn % 2 == 0
        passage = exchange.response_data(body[at : at + size], last=last, mono_ns=10 + turn)
        given += [passage.now, passage.held]
        at, turn = at + size, turn + 1
        kept = at - sum(map(len, given))
        assert exchange.usage_asked_by_us or exchange.in_doubt or kept <= KEPT_LIMIT_BYTES
    passage = (
        exchange.response_end(mono_ns=99) if end == "clean" else exchange.failed(Reason(end), mono_ns=99)
    )
    return b"".join([*given, passage.now, passage.held])


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Everything about a call but its answer's body."""

    dialect: Dialect
    sizes: list[int]
    headers: dict[str, str]
    status: int
    end: str
    request: bytes


def mutant(body: bytes, dice: random.Random) -> bytes:
    """Return a damaged copy: bytes changed, cut out, doubled, or a number in the place of another."""
    damaged = bytearray(body)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(damaged) + 1)
        to = min(len(damaged), at + dice.choice((1, 2, 10, 100)))
        match dice.randrange(5):
            case 0:
                damaged[at:to] = dice.randbytes(to - at)
            case 1:
                del damaged[at:to]
            case 2:
                damaged[at:at] = damaged[at:to]
            case 3:
                damaged[at:to] = dice.choice(
                    (b"-1", b"1e999", b"null", b'"usage":{', b"\n\n", b"}", b"\\", b"\0")
                )
            case _:
                damaged = damaged.replace(b"250", dice.choice((b"-250", b"2.5", b'"250"', b"9" * 30)), 1)
    return bytes(damaged)


def check(setting: Setting, body: bytes) -> None:
    exchange = new_exchange(path=path_of(setting.dialect))

    out = feed_all(exchange, body, setting)
    close = exchange.close_fields(at_ns=2000, mono_ns=2000)

    assert exchange.dialect is setting.dialect
    assert exchange.faults == 0, close
    assert exchange.settled
    if not exchange.usage_asked_by_us:
        assert out == body
    counts = close["counts"]
    assert set(counts) <= set(UNITS)
    assert all(type(value) is int and value >= 0 for value in counts.values())
    assert (close["completeness"] == "exact") == ("reason" not in close)
    assert close.get("reported_cost_nanousd", 0) >= 0
    assert len(frame(CLOSE, close)) < 64 << 10


@pytest.mark.chaos
@pytest.mark.timeout(36_000)
@settings(max_examples=BODIES // (MUTANTS + 1), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 2**32))
def test_any_bytes_pass_and_make_a_row(data: st.DataObject, seed: int) -> None:
    dialect = data.draw(st.sampled_from(DIALECTS))
    body = data.draw(bodies(dialect))
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 7, 40, 500, 70_000]), min_size=1, max_size=4))
    setting = Setting(
        dialect=dialect,
        sizes=sizes if len(body) < 2_000 else [70_000, 1000],
        headers={"content-type": data.draw(HEADERS), "content-encoding": data.draw(CODINGS)},
        status=data.draw(STATUSES),
        end=data.draw(ENDS),
        request=data.draw(REQUESTS),
    )
    dice = random.Random(seed)

    check(setting, body)
    for _ in range(MUTANTS):
        check(setting, mutant(body, dice))


def test_the_paths_of_the_fuzz_reach_every_dialect() -> None:
    reached = [new_exchange(path=path_of(dialect)).dialect for dialect in DIALECTS]

    assert list(DIALECTS) == reached
    sys.stdout.write(f"{len(reached)} dialects\n")
