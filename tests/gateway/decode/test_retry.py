import gzip
import json
import random
from typing import Any

import pytest
from tests.gateway.exchange.feeding import STARTED_AT_NS, WAYS, cut, new_exchange, raw_headers

from kt_gateway.decode import retry
from kt_gateway.decode.retry import BODY_LIMIT_BYTES, RetryReader

S = 10**9
NOW_NS = STARTED_AT_NS + S
"""When the answer comes: a second after the call began."""
NOW_S = NOW_NS // S


def retry_at(
    headers: dict[str, str], body: bytes = b"", *, status: int = 429, way: str = "whole"
) -> int | None:
    """Run a whole call and return what its record says, as seconds after the answer."""
    exchange = new_exchange()
    exchange.open_fields()
    exchange.sent()
    exchange.response_head(status=status, headers=raw_headers(headers), mono_ns=S)
    out = b""
    for piece in cut(body, way, seed=3):
        passage = exchange.response_data(piece, last=False, mono_ns=2 * S)
        out += passage.now + passage.held
    passage = exchange.response_end(mono_ns=2 * S)
    assert body == out + passage.now + passage.held
    at_ns: int | None = exchange.close_fields(at_ns=NOW_NS, mono_ns=2 * S).get("retry_at_ns")
    return None if at_ns is None else (at_ns - NOW_NS) // S


def of(document: Any) -> bytes:
    return json.dumps(document).encode()


OPENAI = {
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-remaining-tokens": "0",
    "x-ratelimit-reset-tokens": "6m0s",
}
ANTHROPIC = {
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:31Z",
    "anthropic-ratelimit-input-tokens-remaining": "1000",
    "anthropic-ratelimit-input-tokens-reset": "2027-01-15T09:00:00Z",
}
CODEX = {
    "error": {
        "type": "usage_limit_reached",
        "plan_type": "pro",
        "resets_at": NOW_S + 3600,
        "resets_in_seconds": 9,
    }
}
GEMINI = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "x/google.rpc.Help"}, {"@type": "x/google.rpc.RetryInfo", "retryDelay": "34s"}],
    }
}
OPENROUTER = {
    "error": {"code": 429, "metadata": {"headers": {"X-RateLimit-Reset": str((NOW_S + 42) * 1000)}}}
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("headers", "body", "after_s"),
    [
        ({"Retry-After": "20"}, b"", 20),
        ({"retry-after": "0"}, b"", 0),
        ({"retry-after": "Fri, 15 Jan 2027 08:01:00 GMT", "date": "Fri, 15 Jan 2027 08:00:00 GMT"}, b"", 60),
        ({"retry-after-ms": "1500", "retry-after": "9"}, b"", 1),
        (OPENAI, b"{}", 360),
        ({**OPENAI, "retry-after": "2"}, b"{}", 2),
        (ANTHROPIC, b"{}", 30),
        ({}, of(CODEX), 3600),
        ({}, of({"error": {"resets_in_seconds": 77.5}}), 77),
        ({}, of(GEMINI), 34),
        ({}, of([GEMINI]), 34),
        ({}, of(OPENROUTER), 42),
        (OPENAI, of(OPENROUTER), 42),
        ({"x-ratelimit-reset": str(NOW_S + 5)}, b"", 5),
        ({"ratelimit-reset": "50", "ratelimit-remaining": "0"}, b"", 50),
        ({"x-ratelimit-reset-requests": "7", "x-ratelimit-reset-tokens": "3"}, b"", 7),
        ({"content-encoding": "gzip"}, gzip.compress(of(CODEX)), 3600),
    ],
)
def test_when_to_come_back_is_on_record(headers: dict[str, str], body: bytes, after_s: int, way: str) -> None:
    assert after_s == retry_at(headers, body, way=way)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_each_status_that_means_later_is_read(status: int) -> None:
    assert 20 == retry_at({"retry-after": "20"}, b"{}", status=status)


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 500, 502])
def test_no_other_status_is(status: int) -> None:
    assert retry_at({"retry-after": "20"}, b"{}", status=status) is None


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "insufficient_quota", "type": "insufficient_quota"}},
        {
            "type": "error",
            "error": {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}},
        },
    ],
)
def test_a_quota_that_no_waiting_restores_names_no_time(body: dict[str, Any]) -> None:
    assert retry_at({**OPENAI, **ANTHROPIC}, of(body)) is None


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"retry-after": "-5"}, b""),
        ({"retry-after": "Fri, 15 Jan 2016 08:01:00 GMT"}, b""),
        ({"retry-after": "99999999999"}, b""),
        ({"retry-after": "1" * 5000}, b""),
        ({"x-ratelimit-reset-": "5"}, b""),
        ({"anthropic-ratelimit-reset": "5"}, b""),
        ({}, b"[]"),
        ({}, b"[" * 9000),
        ({}, b'{"error": "resets_at"}'),
        ({}, of({"error": {"resets_at": True}})),
        ({}, of({"error": {"resets_at": None, "details": {"retryDelay": "3s"}}})),
        ({}, b'{"error":{"resets_at":1e999}}'),
        ({}, b'{"error":{"resets_in_seconds":NaN}}'),
        ({"content-encoding": "gzip"}, b"not gzip"),
        ({"content-encoding": "rot13"}, of(CODEX)),
        ({}, of({**CODEX, "padding": "x" * BODY_LIMIT_BYTES})),
        ({"content-encoding": "gzip"}, gzip.compress(of({**CODEX, "padding": "x" * (10 << 20)}))),
        ({}, of(CODEX)[:-3]),
    ],
)
def test_what_is_not_said_credibly_is_unknown(headers: dict[str, str], body: bytes) -> None:
    assert retry_at(headers, body) is None


def test_a_hint_that_cannot_be_read_gives_way_to_the_next() -> None:
    assert 360 == retry_at({**OPENAI, "retry-after": "later"}, b"no JSON")


def test_whatever_a_provider_writes_nothing_is_raised() -> None:
    dice = random.Random(20261)
    names = [said.name for said in retry.SAID] + list(OPENAI) + list(ANTHROPIC) + ["content-encoding", "date"]
    values = [
        "0",
        "-1",
        "1e9",
        "9" * 30,
        "gzip",
        "Fri, 15 Jan 2027",
        "",
        "\x00",
        "ÿ",
        "5m",
        "2027-01-15T08:00:31Z",
        "nan",
    ]
    for _ in range(3000):
        headers = tuple(
            (dice.choice(names).encode(), dice.choice(values).encode("latin-1")) for _ in range(4)
        )
        reader = RetryReader(headers, at_ns=NOW_NS)
        reader.data(bytes(dice.randbytes(dice.choice((0, 3, 40)))))
        at_ns = reader.at_ns()

        assert at_ns is None or NOW_NS <= at_ns <= NOW_NS + retry.HORIZON_NS


def test_memory_is_bounded_whatever_comes() -> None:
    reader = RetryReader((), at_ns=NOW_NS)

    for _ in range(100):
        reader.data(b"x" * (1 << 20))

    assert BODY_LIMIT_BYTES == len(reader._body)
    assert reader.at_ns() is None


def test_each_way_of_saying_it_names_its_page() -> None:
    for line in (*retry.SAID, *retry.MEMBERS, *retry.WINDOWS):
        assert line.page.startswith("https://")
