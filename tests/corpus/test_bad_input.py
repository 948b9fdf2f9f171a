"""What is wrong with an answer never touches its bytes, and the row says what it was."""

import gzip
import json
import zlib
from typing import Any

import pytest
from tests.gateway.exchange.feeding import Heard, cut, feed, new_exchange

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.shape import Path
from kt_gateway.decode.table import DIALECTS

JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream"}
PATHS = {
    "chat.completions": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini.generate": "/v1beta/models/g:generateContent",
    "ollama.chat": "/api/chat",
    "bedrock.converse": "/model/m/converse",
    "cohere.chat": "/v2/chat",
    "images": "/v1/images/generations",
    "gemini.interactions": "/v1beta/interactions",
}
BY_FAMILY = {dialect.family: dialect for dialect in DIALECTS}
NONSENSE = ['"9"', "9.5", "-1", "true", "1e3", "18446744073709551616", "NaN", "Infinity"]


def put(tree: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def document(dialect: Dialect, **numbers: Any) -> bytes:
    """Return a whole answer of a dialect with these units where it keeps them."""
    usage: dict[str, Any] = {}
    for unit, value in numbers.items():
        put(usage, getattr(dialect.shape, unit)[0], value)
    if dialect.family.startswith("gemini.generate"):
        return json.dumps({"usageMetadata": usage}).encode()
    if dialect.family.startswith("ollama"):
        return json.dumps({"model": "m", "done": True, **usage}).encode()
    return json.dumps({"usage": usage}).encode()


def answered(family: str, body: bytes, headers: dict[str, str] | None = None, way: str = "whole") -> Heard:
    heard = feed(new_exchange(path=PATHS[family]), cut(body, way, seed=7), headers=headers or JSON)
    assert (body, 1) == (heard.body, heard.settled)
    assert all(value >= 0 for value in heard.close["counts"].values())
    return heard


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize("family", PATHS)
def test_what_is_no_count_is_unknown_and_said_to_be_so(family: str, nonsense: str) -> None:
    body = document(BY_FAMILY[family], input=77777, output=3).replace(b"77777", nonsense.encode())

    close = answered(family, body).close

    assert ("partial", "usage_incomplete") == (close["completeness"], close["reason"])
    assert "input" not in close["counts"]


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize(
    "family", [f for f in PATHS if BY_FAMILY[f].shape.cache_read and f != "gemini.interactions"]
)
def test_a_part_that_is_no_count_is_said_to_be_none(family: str, nonsense: str) -> None:
    body = document(BY_FAMILY[family], input=9, output=3, cache_read=77777)

    close = answered(family, body.replace(b"77777", nonsense.encode())).close

    assert ("partial", "usage_incomplete") == (close["completeness"], close["reason"])
    assert "cache_read" not in close["counts"]


@pytest.mark.parametrize("family", PATHS)
def test_null_says_nothing(family: str) -> None:
    body = document(BY_FAMILY[family], input=None, output=3)

    close = answered(family, body).close

    assert ("partial", "usage_incomplete") == (close["completeness"], close["reason"])


@pytest.mark.parametrize("family", [f for f in PATHS if BY_FAMILY[f].shape.total])
@pytest.mark.parametrize("total", [1, 11, 13, 10_000])
def test_a_total_that_does_not_add_up_is_kept_beside_the_parts(family: str, total: int) -> None:
    dialect = BY_FAMILY[family]
    units = {"input": 9, "output": 3, "total": total, "reasoning": 1} if dialect.shape.reasoning else None
    body = document(dialect, **(units or {"input": 9, "output": 3, "total": total}))

    close = answered(family, body).close

    if total == 13 and units:
        assert "exact" == close["completeness"]  # reasoning on top
        return
    assert ("partial", "usage_inconsistent") == (close["completeness"], close["reason"])
    assert f":{total}" in close["raw_usage"]
    assert close["counts"]["input"] == 9
    assert sum(close["counts"].get(unit, 0) for unit in ("output", "reasoning", "image_output")) in (3, 4)


@pytest.mark.parametrize("family", ["responses", "gemini.generate", "cohere.chat", "gemini.interactions"])
def test_more_cached_than_there_was_input_contradicts_itself(family: str) -> None:
    body = document(BY_FAMILY[family], input=9, output=3, cache_read=50)

    close = answered(family, body).close

    assert ("partial", "usage_inconsistent") == (close["completeness"], close["reason"])


@pytest.mark.parametrize("family", PATHS)
def test_a_sum_that_is_named_twice_contradicts_itself(family: str) -> None:
    dialect = BY_FAMILY[family]
    name = dialect.shape.input[0][-1].encode()
    body = document(dialect, input=9, output=3).replace(b'"%b": 9' % name, b'"%b": 9, "%b": 8' % (name, name))

    close = answered(family, body).close

    assert ("partial", "usage_inconsistent") == (close["completeness"], close["reason"])


@pytest.mark.parametrize("family", ["chat.completions", "responses", "messages"])
def test_a_usage_object_that_comes_twice_in_a_large_document_contradicts_itself(family: str) -> None:
    usage = document(BY_FAMILY[family], input=9, output=3)[1:-1]
    body = b'{"text":"%b",%b,%b}' % (b"x" * 200_000, usage, usage)

    close = answered(family, body, way="random cuts").close

    assert ("partial", "usage_inconsistent") == (close["completeness"], close["reason"])


def test_one_line_of_ten_megabytes_passes_and_its_usage_is_found() -> None:
    text = b"x" * (10 << 20)
    body = b'data: {"choices":[{"delta":{"content":"%b"},"finish_reason":"stop"}],' % text
    body += b'"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\ndata: [DONE]\n\n'
    exchange = new_exchange()
    pieces = [body[at : at + 65536] for at in range(0, len(body), 65536)]

    heard = feed(exchange, pieces, headers=SSE)

    assert heard.body == body
    assert ("exact", {"input": 9, "output": 3}) == (heard.close["completeness"], heard.close["counts"])


@pytest.mark.parametrize("family", PATHS)
def test_zero_bytes_are_bytes(family: str) -> None:
    body = b"\0" * 5000

    close = answered(family, body, way="random cuts").close

    assert ("unknown", {}) == (close["completeness"], close["counts"])


def test_zero_bytes_between_events_hide_none() -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\n'
    body = b'data: {"choices":[{"finish_reason":"stop"}]}\n\n\0\0\0\n\n' + usage + b"data: [DONE]\n\n"

    close = answered("chat.completions", body, SSE, "random cuts").close

    assert ("exact", {"input": 9, "output": 3}) == (close["completeness"], close["counts"])


@pytest.mark.parametrize("coder", [gzip.compress, zlib.compress])
def test_a_bomb_is_not_decoded_to_its_end(coder: Any) -> None:
    bomb = coder(b'{"text":"' + bytes(64 << 20) + b'","usage":{"prompt_tokens":9,"completion_tokens":3}}')
    coding = "gzip" if coder is gzip.compress else "deflate"

    close = answered("chat.completions", bomb, {**JSON, "content-encoding": coding}, "random cuts").close

    assert ("unknown", "too_large") == (close["completeness"], close["reason"])


def test_what_is_coded_twice_is_read_where_the_head_says_so() -> None:
    body = document(BY_FAMILY["chat.completions"], input=9, output=3)
    twice = gzip.compress(gzip.compress(body))

    said = answered("chat.completions", twice, {**JSON, "content-encoding": "gzip, gzip"}).close
    unsaid = answered("chat.completions", twice, {**JSON, "content-encoding": "gzip"}).close

    assert {"input": 9, "output": 3} == said["counts"]
    assert "unknown" == unsaid["completeness"]


def test_a_coding_that_the_head_lies_about_is_undecodable() -> None:
    body = b"\x00\x01 neither gzip nor JSON"

    close = answered("chat.completions", body, {**JSON, "content-encoding": "gzip"}).close

    assert ("unknown", "undecodable") == (close["completeness"], close["reason"])


@pytest.mark.parametrize("family", PATHS)
def test_a_document_cut_by_a_wrong_length_is_not_exact(family: str) -> None:
    body = document(BY_FAMILY[family], input=9, output=3)[:-1]

    close = answered(family, body).close

    assert close["completeness"] in ("partial", "unknown")
    assert "undecodable" == close["reason"]
