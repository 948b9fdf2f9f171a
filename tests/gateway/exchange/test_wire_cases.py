"""Every folder of fixtures/wire that speaks a dialect we know, read four ways and compared with what it expects."""

import functools
from pathlib import Path

import pytest
from tests.gateway.exchange.feeding import WAYS, Heard, cut, feed, new_exchange

from kt_cli.demo import wire_case
from kt_gateway.decode.table import dialect_of

ROOT = Path(__file__).parents[3] / "fixtures" / "wire"
CASES = [
    case
    for case in wire_case.load_all(ROOT)
    if dialect_of(case.request.method, case.request.path) is not None
]
SEED = 20261130
TERMINAL = (
    b"data: [DONE]",
    *(
        b'data: {"type":"%b"' % kind
        for kind in (b"message_stop", b"transcript.text.done", b"speech.audio.done")
    ),
    *(b'data: {"type":"response.%b"' % kind for kind in (b"incomplete", b"failed", b"cancelled")),
    b'"done":true',
    b'"is_finished":true',
    b'"type":"message-end"',
)
"""What ends a stream, as the cases write it; `response.completed` may be too long to be held whole."""


def replay(case: wire_case.Case, way: str) -> Heard:
    return _replay(case.name, way)


@functools.cache
def _replay(name: str, way: str) -> Heard:
    case = next(case for case in CASES if case.name == name)
    headers = {**case.response.headers}
    if case.response.encoding:
        headers["content-encoding"] = case.response.encoding.removesuffix("-raw")
    if case.response.framing == "sized":
        headers["content-length"] = "1"
    return feed(
        new_exchange(
            path=case.request.path, headers={"content-type": "application/json", **case.request.headers}
        ),
        cut(b"".join(case.body_pieces()), way, seed=SEED),
        request=case.request.body.encode(),
        status=case.response.status,
        headers=headers,
        end="clean" if case.response.end == "clean" else "upstream_cut",
        marks_last=case.response.framing == "sized",
    )


def test_there_are_cases_to_read() -> None:
    assert len(CASES) >= 25


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_read_as_it_says(case: wire_case.Case, way: str) -> None:
    expect = case.expect

    heard = replay(case, way)

    close = heard.close
    assert (expect.completeness, expect.reason or None) == (close["completeness"], close.get("reason"))
    assert expect.counts == close["counts"]
    assert (expect.model_answered or None) == close.get("model")
    assert expect.status == close["status"]
    assert expect.stream is None or expect.stream == close["stream"]
    assert not expect.service_tier or expect.service_tier == close["service_tier"]
    assert not expect.request_id or expect.request_id == close["request_id"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_reaches_the_agent_as_it_says(case: wire_case.Case, way: str) -> None:
    heard = replay(case, way)

    assert heard.settled == 1
    assert case.agent_body == heard.body
    assert (case.expect.agent != "reset") == heard.cleanly


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_terminal_event_waits_for_the_record(case: wire_case.Case, way: str) -> None:
    heard = replay(case, way)

    before = heard.before.replace(b'"data: [DONE]', b"").replace(b"data: [DONE]\\n", b"")
    assert not any(mark in before for mark in TERMINAL)
    if case.response.framing == "sized" and case.response.end == "clean":
        assert heard.after, "the last bytes of a sized answer leave after the record"
