import json

import pytest
from tests.gateway.exchange.feeding import WAYS, cut

from kt_gateway.decode import ollama
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange.lines import LineStream
from kt_gateway.exchange.sse import EVENT_LIMIT_BYTES

SAID = b'{"model":"m","message":{"content":"a"},"done":false}\n'
LAST = b'{"model":"m","message":{"content":""},"done":true,"prompt_eval_count":9,"eval_count":3}\n'


def new_lines(*, typed: bool = True) -> tuple[LineStream, Tally]:
    tally = Tally(ollama.SHAPE)
    return LineStream(ollama.CHAT, tally, typed=typed), tally


def fed(lines: LineStream, body: bytes, way: str = "whole") -> tuple[bytes, bytes]:
    """Return what was given at once and what was held, with what was kept at the end."""
    now, held = b"", b""
    for piece in cut(body, way, seed=3):
        outcome = lines.data(piece, mono_ns=1)
        now, held = now + outcome.now, held + outcome.held
        if outcome.terminal:
            return now, held
    return now, held + lines.end(mono_ns=2)


@pytest.mark.parametrize("way", WAYS)
def test_the_line_that_ends_the_stream_is_held(way: str) -> None:
    lines, tally = new_lines()

    now, held = fed(lines, SAID + b"\n" + SAID + LAST, way)

    assert now == SAID + b"\n" + SAID
    assert LAST.startswith(held)
    assert (tally.done, tally.measured is not None, lines.streams) == (True, True, True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_one_line_alone_is_no_stream(way: str, end: bytes) -> None:
    lines, tally = new_lines(typed=False)

    now, held = fed(lines, LAST.strip() + end, way)

    assert now + held == LAST.strip() + end
    assert (tally.measured is not None, lines.streams, lines.readable) == (True, False, True)


@pytest.mark.parametrize("way", WAYS)
def test_one_object_over_several_lines_is_read_too(way: str) -> None:
    lines, tally = new_lines(typed=False)
    body = b"\n" + json.dumps(json.loads(LAST), indent=2).encode()

    now, held = fed(lines, body, way)

    assert now + held == body
    assert (tally.measured is not None, lines.streams, lines.readable) == (True, False, True)


@pytest.mark.parametrize("size", [1000, 65_536, 10**6])
def test_a_line_too_long_to_keep_is_read_as_it_passes(size: int) -> None:
    lines, tally = new_lines()
    long = LAST.replace(b'"content":""', b'"content":"%b"' % (b"x" * 200_000))
    body = SAID + long
    now, held, most = b"", b"", 0

    for at in range(0, len(body), size):
        outcome = lines.data(body[at : at + size], mono_ns=1)
        now, held = now + outcome.now, held + outcome.held
        most = max(most, lines.kept_bytes)

    assert now + held == body
    assert held.endswith(b"\n")
    assert (tally.done, most <= EVENT_LIMIT_BYTES) == (True, True)
    assert tally.measured is not None


def test_ordinary_lines_are_not_parsed_once_the_model_speaks() -> None:
    lines, tally = new_lines()

    fed(lines, SAID * 10, "7 bytes")

    assert tally.documents == 1


@pytest.mark.parametrize(
    "body", [b"{broken\n", SAID + b"{broken}\n", SAID + b'["error"]\n', SAID + LAST[:-9]]
)
def test_a_line_that_is_no_object_is_not_readable(body: bytes) -> None:
    lines, _ = new_lines()

    now, held = fed(lines, body.replace(b"{broken", b'"error" {broken'))

    assert now + held == body.replace(b"{broken", b'"error" {broken')
    assert not lines.readable
