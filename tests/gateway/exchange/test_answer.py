import gzip
import json

import pytest

from kt_gateway.decode.table import DIALECTS
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange.answer import CODED_BACKLOG_BYTES, Answer, BodyFacts

EVENT = b'data: {"model":"m","choices":[{"delta":{"content":"a"}}]}\n\n'
DOCUMENT = b'{"model":"m","usage":{"prompt_tokens":1,"completion_tokens":2}}'


def new_answer(content_type: str = "text/event-stream", content_encoding: str = "") -> tuple[Answer, Tally]:
    tally = Tally(DIALECTS[0].shape)
    facts = BodyFacts(content_type=content_type, content_encoding=content_encoding)
    return Answer(DIALECTS[0], tally, facts, withhold_usage=True), tally


def passed(answer: Answer, body: bytes, size: int) -> bytes:
    given = b"".join(answer.data(body[at : at + size], mono_ns=1).now for at in range(0, len(body), size))
    return given + answer.end(mono_ns=2, proper=True)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    "content_type", ["", "text/event-stream", "application/json", "text/plain", "text/html"]
)
@pytest.mark.parametrize("before", [b"", b"\n\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(("body", "stream"), [(EVENT, True), (DOCUMENT, False)])
def test_the_first_bytes_decide_what_a_body_is(
    body: bytes, stream: bool, before: bytes, content_type: str, size: int
) -> None:
    answer, tally = new_answer(content_type)

    assert passed(answer, before + body, size) == before + body
    assert answer.stream == stream
    assert tally.model == "m"


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("body", [b"<html>", b"data", b"ev", b"", b"\xef\xbb", b"Not found"])
def test_a_body_that_is_neither_passes(body: bytes, size: int) -> None:
    answer, tally = new_answer("text/html")

    assert passed(answer, body, size) == body
    assert not answer.stream
    assert tally.documents == 0


def test_white_space_before_an_answer_never_waits() -> None:
    answer, _ = new_answer("application/json")

    assert answer.data(b"\n", mono_ns=1).now == b"\n"
    assert answer.data(b"  \n", mono_ns=1).now == b"  \n"


def test_json_that_is_broken_is_undecodable_and_text_is_not() -> None:
    broken, _ = new_answer("application/json")
    text, _ = new_answer("text/plain")

    passed(broken, b"oops", 1)
    passed(text, b"oops", 1)

    assert broken.undecodable
    assert not text.undecodable


def test_coded_bytes_wait_only_while_they_may_begin_the_terminal_event() -> None:
    answer, tally = new_answer(content_encoding="gzip")
    coded = gzip.compress(
        EVENT + b"data: [DONE]\n\n", 0
    )  # stored, so that cuts in the content are cuts in the bytes
    begin = coded.index(b"data: [DONE]")

    assert answer.data(coded[:begin], mono_ns=1).now == coded[:begin]
    assert answer.data(coded[begin : begin + 8], mono_ns=1).now == b""
    assert answer.kept_bytes == 8
    outcome = answer.data(coded[begin + 8 :], mono_ns=1)

    assert (outcome.now, outcome.held, outcome.terminal) == (b"", coded[begin:], True)
    assert tally.done


def test_coded_bytes_do_not_wait_without_end() -> None:
    answer, _ = new_answer(content_encoding="gzip")
    empty = gzip.compress(b"")
    answer.data(gzip.compress(EVENT + b"dat"), mono_ns=1)

    given = sum(
        len(answer.data(empty * 100, mono_ns=1).now) for _ in range(CODED_BACKLOG_BYTES // len(empty) // 50)
    )

    assert given > 0
    assert answer.kept_bytes <= CODED_BACKLOG_BYTES


@pytest.mark.parametrize("cut_off", [1, 8])
def test_a_coded_document_without_its_end_is_a_lower_bound(cut_off: int) -> None:
    answer, tally = new_answer("application/json", "gzip")

    passed(answer, gzip.compress(DOCUMENT)[:-cut_off], 5)

    assert answer.undecodable
    assert tally.measured is not None


def test_a_wanted_member_that_is_too_long_is_said_to_be_so() -> None:
    answer, tally = new_answer("application/json")
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "note": "x" * 200_000}

    passed(answer, json.dumps({"usage": usage}).encode(), 4096)

    assert answer.too_large
    assert tally.measured is None
