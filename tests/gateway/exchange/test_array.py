import json

import pytest
from tests.gateway.exchange.feeding import WAYS, cut

from kt_gateway.decode import gemini
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange.array import ArrayStream

USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}


def element(text: str, **more: object) -> bytes:
    return json.dumps({"candidates": [{"content": {"parts": [{"text": text}]}}], **more}).encode()


def fed(body: bytes, way: str) -> tuple[ArrayStream, Tally, bytes, bytes]:
    tally = Tally(gemini.SHAPE)
    stream = ArrayStream(gemini.STREAM, tally)
    now, held = b"", b""
    for number, piece in enumerate(cut(body, way, seed=5)):
        outcome = stream.data(piece, mono_ns=number)
        now, held = now + outcome.now, held + outcome.held
        if outcome.terminal:
            break
    return stream, tally, now, held + stream.end(mono_ns=9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gap", [b",", b"\r\n,\r\n", b" , "])
def test_elements_pass_and_the_bracket_that_ends_them_is_held(way: str, gap: bytes) -> None:
    body = (
        b" ["
        + element('a]}"\\', usageMetadata={"promptTokenCount": 1})
        + gap
        + element("b", usageMetadata=USAGE)
    )

    stream, tally, now, held = fed(body + b"]\n", way)

    assert now == body
    assert b"]\n".startswith(held[:2])
    assert held[:1] == b"]"
    assert (tally.usage, tally.done, stream.readable) == (USAGE, True, True)


@pytest.mark.parametrize("way", ["whole", "random cuts"])
def test_an_element_too_long_to_keep_is_read_as_it_passes(way: str) -> None:
    long = {
        "candidates": [{"content": {"parts": [{"text": "x" * 300_000}]}, "finishReason": "STOP"}],
        "usageMetadata": USAGE,
    }
    body = b"[" + json.dumps(long).encode()

    _, tally, now, held = fed(body + b"]", way)

    assert (body, b"]") == (now, held)
    assert (tally.usage, tally.finished) == (USAGE, True)


def test_an_array_that_is_cut_is_not_readable() -> None:
    body = b"[" + element("a", usageMetadata=USAGE) + b","

    stream, tally, now, _ = fed(body, "7 bytes")

    assert now == body
    assert (stream.readable, tally.usage) == (False, USAGE)


def test_an_element_that_is_no_object_is_not_readable() -> None:
    stream, tally, now, held = fed(b'[["error"]]', "whole")

    assert (b'[["error"]', b"]") == (now, held)
    assert (stream.readable, tally.documents) == (False, 0)


def test_nesting_without_end_passes() -> None:
    stream, _, now, _ = fed(b"[" * 100_000, "random cuts")

    assert len(now) == 100_000
    assert not stream.readable
