import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from kt_conformance import caller
from kt_conformance.provider import Provider
from kt_conformance.provider_call import totals


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as one:
        yield one


def post(provider: Provider, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(provider.url).netloc, timeout=10)
    chunked = headers.pop("chunked", None) is not None
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, iter([content]) if chunked else content, headers, encode_chunked=chunked)
    answer = connection.getresponse()
    return answer.status, answer.read()


CHAT = "/v1/chat/completions"


def question(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "x"}], **more}


def test_no_two_answers_use_the_same(provider: Provider) -> None:
    used = [json.loads(post(provider, CHAT, question())[1])["usage"] for _ in range(3)]

    assert [(30, 70, 100), (31, 72, 103), (32, 74, 106)] == [tuple(usage.values()) for usage in used]
    assert (93, 216) == totals(provider.calls())
    assert all(call.answered for call in provider.calls())


@pytest.mark.parametrize("asks", [True, False])
def test_a_stream_tells_usage_to_those_who_ask(provider: Provider, asks: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if asks else {}

    status, content = post(provider, CHAT, question(stream=True, **options))

    assert 200 == status
    assert content.endswith(b"data: [DONE]\n\n")
    assert asks == (b'"usage"' in content)
    assert (30 if asks else None) == provider.calls()[0].input_tokens


def test_what_came_is_remembered(provider: Provider) -> None:
    post(provider, CHAT, question(), authorization="Bearer sk-1")
    post(provider, CHAT, question(stream=True), **{"x-api-key": "sk-2"})
    post(provider, CHAT, question(model="chunks"), chunked="yes")

    assert ["sk-1", "sk-2", ""] == [call.key for call in provider.calls()]
    assert [False, True, False] == [call.stream for call in provider.calls()]
    assert ["m", "m", "chunks"] == [call.model for call in provider.calls()]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/v1/responses", {}, 404), (CHAT, {}, 400), (CHAT, b"[" * 50_000, 400), (CHAT, b"\xff", 400)],
)
def test_what_it_does_not_know_is_refused_and_no_call(
    provider: Provider, path: str, body: Any, status: int
) -> None:
    assert status == post(provider, path, body)[0]
    assert [] == provider.calls()


def test_it_can_be_silent_about_usage(provider: Provider) -> None:
    provider.keep_usage_silent()

    answer = json.loads(post(provider, CHAT, question())[1])

    assert "usage" not in answer
    assert (0, 0) == totals(provider.calls())


def test_it_holds_answers_until_it_is_told(provider: Provider) -> None:
    provider.hold()
    statuses: list[int] = []
    asking = threading.Thread(target=lambda: statuses.append(caller.ask(provider.url)))
    asking.start()
    asking.join(0.2)

    assert asking.is_alive()
    provider.release()
    asking.join(5)
    assert [200] == statuses


def test_it_forgets_when_it_begins_anew(provider: Provider) -> None:
    post(provider, CHAT, question())

    provider.begin_anew()

    assert [] == provider.calls()


def test_nobody_answers_after_its_end() -> None:
    with Provider() as provider:
        assert 200 == caller.ask(provider.url)

    assert caller.REFUSED == caller.ask(provider.url)
