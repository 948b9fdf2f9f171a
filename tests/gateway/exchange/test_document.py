import json

import pytest

from kt_gateway.decode.table import DIALECTS
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange.document import KEEP_BYTES, Document

USAGE = {"prompt_tokens": 1, "completion_tokens": 2}


def read(body: bytes, size: int = 4096) -> tuple[Document, Tally]:
    tally = Tally(DIALECTS[0].shape)
    document = Document(DIALECTS[0], tally)
    for at in range(0, len(body), size):
        assert document.data(body[at : at + size], mono_ns=1).now == body[at : at + size]
    document.end(mono_ns=2)
    return document, tally


@pytest.mark.parametrize("length", [0, KEEP_BYTES - 200, KEEP_BYTES, KEEP_BYTES * 3])
@pytest.mark.parametrize("first", [True, False])
def test_usage_is_found_in_a_body_of_any_size(length: int, first: bool) -> None:
    members = {
        "usage": USAGE,
        "model": "m",
        "choices": [{"message": {"content": '"usage"\\ }' * (length // 10)}}],
    }
    ordered = members if first else dict(reversed(members.items()))

    document, tally = read(json.dumps(ordered).encode())

    assert document.readable
    assert tally.usage == USAGE
    assert tally.model == "m"


def test_a_cut_body_keeps_what_was_whole() -> None:
    document, tally = read(json.dumps({"model": "m", "usage": USAGE, "choices": []}).encode()[:-3])

    assert not document.readable
    assert tally.usage == USAGE


@pytest.mark.parametrize("body", [b"[1]", b"null", b'"x"', b"5"])
def test_json_that_is_no_object_says_nothing(body: bytes) -> None:
    document, tally = read(body)

    assert document.readable
    assert tally.documents == 0


def test_bytes_that_are_no_utf8_do_not_hide_usage() -> None:
    _, tally = read(b'{"text":"\xff\xfe","usage":{"prompt_tokens":1,"completion_tokens":2}}')

    assert tally.usage == USAGE


def test_nesting_without_end_is_not_readable() -> None:
    document, _ = read(b"[" * 50_000)

    assert not document.readable
