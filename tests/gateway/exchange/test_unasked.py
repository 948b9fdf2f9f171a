import gzip
import json
from typing import Any

import pytest
from tests.gateway.exchange.feeding import WAYS, cut, feed, new_exchange

from kt_gateway.exchange.unasked import BODY_LIMIT_BYTES, REMEMBERED_NS, Unasked, names_the_option

REFUSAL = json.dumps(
    {
        "object": "error",
        "detail": [{"loc": ["body", "stream_options", "include_usage"], "type": "extra_forbidden"}],
    }
).encode()
STREAMED = b'{"model":"m","stream":true}'
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("status", [400, 422])
def test_an_answer_that_refuses_what_only_we_asked_for_goes_nowhere(
    status: int, way: str, sized: bool
) -> None:
    exchange = new_exchange()

    heard = feed(exchange, cut(REFUSAL, way), request=STREAMED, status=status, headers=JSON, marks_last=sized)

    assert (b"", 1, True) == (heard.body, heard.settled, exchange.again)
    assert (heard.close["completeness"], heard.close["reason"]) == ("unknown", "provider_error")
    assert (heard.close["status"], heard.close["response_bytes"]) == (status, len(REFUSAL))


def test_a_coded_refusal_is_understood() -> None:
    exchange = new_exchange()
    headers = {**JSON, "content-encoding": "gzip"}

    feed(exchange, [gzip.compress(REFUSAL)], request=STREAMED, status=422, headers=headers)

    assert exchange.again


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"status": 401}, "another status"),
        (
            {"request": b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}'},
            "the agent's own wish",
        ),
        ({"request": b'{"model":"m"}'}, "nothing was added"),
    ],
)
def test_every_other_answer_passes(more: dict[str, Any], why: str) -> None:
    exchange = new_exchange()
    facts = {"status": 422, "request": STREAMED, "headers": JSON} | more

    heard = feed(exchange, cut(REFUSAL, "7 bytes"), **facts)

    assert (REFUSAL, False) == (heard.body, exchange.again), why


@pytest.mark.parametrize("end", ["clean", "upstream_cut"])
def test_an_error_about_something_else_passes_once_it_is_whole(end: str) -> None:
    exchange = new_exchange()
    body = b'{"error":{"message":"no such model"}}'

    heard = feed(exchange, cut(body, "7 bytes"), request=STREAMED, status=400, headers=JSON, end=end)

    assert (body, 1, False) == (heard.body, heard.settled, exchange.again)


def test_a_cut_refusal_is_no_refusal() -> None:
    exchange = new_exchange()

    heard = feed(exchange, [REFUSAL[:-5]], request=STREAMED, status=422, headers=JSON, end="upstream_cut")

    assert (REFUSAL[:-5], False) == (heard.body, exchange.again)


def test_a_long_error_is_not_kept() -> None:
    exchange = new_exchange()
    body = REFUSAL + b" " * BODY_LIMIT_BYTES

    heard = feed(exchange, cut(body, "random cuts"), request=STREAMED, status=422, headers=JSON)

    assert (body, False) == (heard.body, exchange.again)


def test_the_head_waits_while_the_answer_is_in_doubt() -> None:
    exchange = new_exchange()
    exchange.collected(STREAMED)
    exchange.sent()

    exchange.response_head(status=422, headers=(), mono_ns=1)
    doubted = exchange.in_doubt
    exchange.response_data(b"{}", last=True, mono_ns=2)

    assert (True, False) == (doubted, exchange.in_doubt)


def test_a_model_that_refused_is_remembered_for_a_day() -> None:
    unasked = Unasked()
    unasked.note(b"a", "m", mono_ns=5)

    assert unasked.knows(b"a", "m", mono_ns=5 + REMEMBERED_NS - 1)
    assert not unasked.knows(b"a", "m", mono_ns=5 + REMEMBERED_NS)
    assert not unasked.knows(b"a", "n", mono_ns=6)
    assert not unasked.knows(b"b", "m", mono_ns=6)


def test_the_memory_is_bounded() -> None:
    unasked = Unasked()
    for number in range(1500):
        unasked.note(b"a", str(number), mono_ns=0)

    known = [number for number in range(1500) if unasked.knows(b"a", str(number), mono_ns=1)]

    assert list(range(500, 1500)) == known


def test_what_cannot_be_decoded_names_nothing() -> None:
    assert not names_the_option(b"stream_options", content_encoding="gzip")
    assert names_the_option(b"stream_options", content_encoding="")
