import json

import pytest

from kt_gateway.decode.table import DIALECTS
from kt_gateway.http1 import answers, rewrite


@pytest.mark.parametrize(
    ("path", "status", "where"),
    [
        (b"/v1/chat/completions", 403, ("error", "code")),
        (b"/v1/responses", 429, ("error", "reason")),
        (b"/v1/messages", 403, ("error", "reason")),
        (b"/v1/messages/count_tokens", 403, ("error", "reason")),
        (b"/v1beta/models/g:streamGenerateContent", 403, ("error", "details")),
        (b"/api/chat", 403, ("reason",)),
        (b"/model/m/converse", 403, ("reason",)),
        (b"/v1/unknown", 403, ("error", "code")),
        (b"/v1/\xff", 403, ("error", "code")),
    ],
)
def test_a_refusal_is_in_the_words_of_its_dialect(path: bytes, status: int, where: tuple[str, ...]) -> None:
    answer = answers.final(path, "used_up", "wanted: less")

    body = json.loads(answer.body)
    for name in where:
        body = body[name]
    assert "used_up" in json.dumps(body)
    assert (status, b"x-should-retry: false\r\n") == (answer.status, answer.headers)
    assert b"wanted: less" in answer.body


def test_responses_say_that_a_quota_is_used_up() -> None:
    body = json.loads(answers.final(b"/v1/responses", "used_up", "x").body)

    assert "insufficient_quota" == body["error"]["code"]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.suffixes[0])
def test_no_refusal_invites_to_try_again(dialect: object) -> None:
    refused = dialect.refuse("code", "message")  # type: ignore[attr-defined]

    assert refused.status in (403, 429)
    assert json.loads(json.dumps(refused.body)) == refused.body


@pytest.mark.parametrize(
    ("path", "header"),
    [
        (b"/v1/chat/completions", (b"authorization", b"Bearer k")),
        (b"/v1/messages", (b"x-api-key", b"k")),
        (b"/v1beta/models/g:generateContent", (b"x-goog-api-key", b"k")),
        (b"/openai/deployments/a/chat/completions", (b"api-key", b"k")),
        (b"/v1/models", (b"authorization", b"Bearer k")),
    ],
)
def test_the_key_goes_where_the_family_looks_for_it(path: bytes, header: tuple[bytes, bytes]) -> None:
    assert rewrite.key_header(path, "k") == header
