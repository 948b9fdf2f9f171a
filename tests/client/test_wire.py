import json

import pytest
from tests.gateway.exchange.feeding import WAYS, cut

from kt_client.errors import EngineLost, InsideAnAgent, KtError, NotFound, WrongState
from kt_client.wire import Answer, Conversation, Request
from kt_ledger.version import VERSION

DOCUMENT = b'{"a": [1, 2, "\xc3\xa4"]}'
FRAMINGS = {
    "sized": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(DOCUMENT), DOCUMENT),
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\n" + DOCUMENT[:3] + b"\r\n%x;ext=1\r\n%b\r\n0\r\n\r\n" % (len(DOCUMENT) - 3, DOCUMENT[3:]),
    "by close": b"HTTP/1.1 200 OK\r\n\r\n" + DOCUMENT,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("framing", FRAMINGS)
def test_every_framing_is_understood_however_it_is_cut(framing: str, way: str) -> None:
    conversation = Conversation()

    for piece in cut(FRAMINGS[framing], way, seed=7):
        conversation.receive(piece)
    if not conversation.ended:
        conversation.receive(b"")

    assert conversation.ended
    assert {"a": [1, 2, "ä"]} == conversation.document()


@pytest.mark.parametrize("way", WAYS)
def test_lines_are_whole_however_they_are_cut(way: str) -> None:
    body = b'{"n": 1}\n\n{"n": 2}\n{"n": 3}'
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    conversation = Conversation(lines=True)

    seen = [line for piece in cut(answer, way, seed=11) for line in conversation.receive(piece)]

    assert [{"n": 1}, {"n": 2}, {"n": 3}] == seen
    assert conversation.ended


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    ],
)
def test_an_answer_that_ends_too_early_is_lost(answer: bytes) -> None:
    conversation = Conversation()
    conversation.receive(answer) if answer else None

    with pytest.raises(EngineLost):
        conversation.receive(b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"x" * 70_000,
    ],
)
def test_what_is_no_answer_is_refused_at_once(answer: bytes) -> None:
    with pytest.raises(EngineLost):
        Answer().receive(answer)


def test_a_refusal_is_the_exception_of_its_kind() -> None:
    def refused(code: str, exit_code: int) -> type[KtError]:
        body = json.dumps(
            {"error": {"code": code, "exit_code": exit_code, "message": "got, wanted, do"}}
        ).encode()
        conversation = Conversation(lines=True)
        conversation.receive(b"HTTP/1.1 409 X\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        with pytest.raises(KtError, match="got, wanted, do") as caught:
            conversation.document()
        assert (exit_code, code) == (caught.value.exit_code, caught.value.code)
        return caught.type

    assert WrongState is refused("invalid_transition", 4)
    assert NotFound is refused("no_such_agent", 3)
    assert InsideAnAgent is refused("inside_an_agent", 1)
    assert KtError is refused("anything", 1)


def test_a_refusal_without_a_document_is_still_one() -> None:
    conversation = Conversation()
    conversation.receive(b"HTTP/1.1 500 X\r\ncontent-length: 2\r\n\r\n[]")

    with pytest.raises(KtError, match="the engine answered 500"):
        conversation.document()


def test_a_request_says_who_asks_and_carries_any_bytes() -> None:
    head, _, body = (
        Request(method="PUT", target="/v1/x", body={"v": "\udcff"}).encoded().partition(b"\r\n\r\n")
    )

    assert b"kt-version: " + VERSION.encode() in head
    assert b"content-length: %d" % len(body) in head
    assert {"v": "\udcff"} == json.loads(body.decode("utf-8", "surrogateescape"))
