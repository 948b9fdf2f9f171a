import gzip
import json
import zlib
from typing import Any

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kt_gateway.decode.dialect import Asks
from kt_gateway.decode.table import DIALECTS
from kt_gateway.exchange import request
from kt_gateway.exchange.request import Asked

CHAT = DIALECTS[0].asks


def read(
    body: bytes,
    *,
    inject: bool = True,
    asks: Asks = CHAT,
    path: str = "/v1/chat/completions",
    content_type: str = "application/json",
    content_encoding: str = "",
) -> tuple[Asked, bytes]:
    sent = request.Sent(body=body, content_type=content_type, content_encoding=content_encoding)
    known = request.from_path(asks, path)
    return request.read(sent, asks, known=known, inject=lambda model: inject)


@pytest.mark.parametrize(
    ("body", "forwarded"),
    [
        (b'{"stream":true}', b'{"stream_options":{"include_usage":true},"stream":true}'),
        (b' \n{ "stream" : true }\n', b' \n{"stream_options":{"include_usage":true}, "stream" : true }\n'),
        (b'{"stream":true,"stream_options":{}}', b'{"stream":true,"stream_options":{"include_usage":true}}'),
        (
            b'{"stream":true,"stream_options": { "x": 1 } }',
            b'{"stream":true,"stream_options": {"include_usage":true, "x": 1 } }',
        ),
        (
            b'{"m":[{"stream_options":{}},"stream"],"stream":true,"stream_options":{"x":{}}}',
            b'{"m":[{"stream_options":{}},"stream"],"stream":true,"stream_options":{"include_usage":true,"x":{}}}',
        ),
        (
            b'{"messages":[{"stream":false}],"stream":true}',
            b'{"stream_options":{"include_usage":true},"messages":[{"stream":false}],"stream":true}',
        ),
    ],
)
def test_a_streamed_request_that_does_not_say_is_made_to_ask(body: bytes, forwarded: bytes) -> None:
    assert read(body)[1] == forwarded


@pytest.mark.parametrize(
    "body",
    [
        b'{"stream":false}',
        b'{"model":"m"}',
        b'{"stream":"true"}',
        b'{"stream":1}',
        b'{"stream":true,"stream_options":{"include_usage":false}}',
        b'{"stream":true,"stream_options":{"include_usage":true}}',
        b'{"stream":true,"stream_options":{"include_usage":null}}',
        b'{"stream":true,"stream_options":null}',
        b'{"stream":true,"stream_options":[]}',
        b'{"stream":true,"stream_options":"x"}',
        b'{"stream":true,"stream":true}',
        b'{"stream":false,"stream":true}',
        b'{"stream":true,"stream_options":{},"stream_options":{}}',
        b'\xef\xbb\xbf{"stream":true}',
        b'{"stream":true,"x":"\xff"}',
        '{"stream":true}'.encode("utf-16"),
        b'{"stream":true',
        b'{"stream":true} {"stream":true}',
        b'[{"stream":true}]',
        b"",
        b"\0",
        b"[" * 100_000,
    ],
)
def test_everything_else_is_forwarded_as_it_came(body: bytes) -> None:
    assert read(body)[1] is body


@pytest.mark.parametrize(
    ("content_type", "changed"),
    [("", True), ("application/json", True), ("application/vnd.x+json", True), ("text/plain", False)],
)
def test_only_json_is_changed(content_type: str, changed: bool) -> None:
    body = b'{"stream":true}'

    assert (read(body, content_type=content_type)[1] is not body) == changed


def test_nothing_is_asked_where_that_is_not_wished() -> None:
    body = b'{"stream":true}'

    assert read(body, inject=False)[1] is body


def test_what_a_later_charge_needs_is_read() -> None:
    asked, _ = read(b'{"model":"m","stream":false,"max_tokens":5,"n":3}')

    assert asked == Asked(model="m", stream=False, max_tokens=5, choices=3)


def test_the_newer_bound_wins() -> None:
    asked, _ = read(b'{"max_tokens":5,"max_completion_tokens":7}')

    assert asked.max_tokens == 7


@pytest.mark.parametrize("bad", ["-1", "true", "1.5", '"5"', "null", "1e3", str(2**64)])
def test_what_is_no_count_is_not_known(bad: str) -> None:
    asked, _ = read(f'{{"model":{bad},"max_tokens":{bad},"n":{bad},"stream":{bad}}}'.encode())

    assert (asked.max_tokens, asked.choices) == (None, None)


@pytest.mark.parametrize(
    ("name", "coder"),
    [
        ("gzip", gzip.compress),
        ("zstd", zstandard.compress),
        ("br", brotli.compress),
        ("deflate", zlib.compress),
    ],
)
def test_a_coded_request_is_read_and_forwarded_as_it_came(name: str, coder: Any) -> None:
    body = coder(b'{"model":"m","stream":true}')

    asked, forwarded = read(body, content_encoding=name)

    assert asked == Asked(model="m", stream=True)
    assert forwarded is body


@pytest.mark.parametrize("name", ["gzip", "zstd", "br", "deflate", "made-up"])
def test_a_request_that_cannot_be_decoded_is_forwarded_as_it_came(name: str) -> None:
    body = b"\x1f\x8b broken"

    assert read(body, content_encoding=name) == (Asked(), body)


def test_a_request_that_decodes_without_end_is_forwarded_as_it_came() -> None:
    bomb = gzip.compress(b'{"model":"' + bytes(60 << 20))

    assert read(bomb, content_encoding="gzip") == (Asked(), bomb)


def test_a_large_request_is_walked_over() -> None:
    image = "A" * (2 << 20)
    body = json.dumps({"messages": [{"image": image}], "model": "m", "stream": True, "n": 2}).encode()

    asked, forwarded = read(body)

    assert asked == Asked(model="m", stream=True, choices=2)
    assert json.loads(forwarded)["stream_options"] == {"include_usage": True}
    assert forwarded.replace(b'"stream_options":{"include_usage":true},', b"", 1) == body


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["model", "messages", "stream_options", "include_usage", 'stream"', "\\"]) | st.text(
    max_size=4
)
OPTIONS = st.just({}) | st.dictionaries(NAMES, VALUES, max_size=3) | VALUES


@settings(max_examples=200)
@given(
    st.dictionaries(NAMES, VALUES, max_size=5),
    OPTIONS,
    st.booleans(),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)
def test_the_change_is_one_member_and_nothing_else(
    document: dict[str, Any], options: Any, with_options: bool, indent: int | None, ascii_only: bool
) -> None:
    document = {name: value for name, value in document.items() if name != "stream_options"}
    if with_options:
        document["stream_options"] = options
    document["stream"] = True
    body = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    _, forwarded = read(body)

    if forwarded is body:
        return
    seen = json.loads(forwarded)
    assert seen["stream_options"] == {**document.get("stream_options", {}), "include_usage": True}
    assert {**seen, "stream_options": 0} == {**document, "stream_options": 0}
    added = len(forwarded) - len(body)
    assert any(forwarded[:at] + forwarded[at + added :] == body for at in range(len(body)))
