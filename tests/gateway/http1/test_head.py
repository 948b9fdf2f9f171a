"""Heads: whatever we accept, a second parser reads the same; what we refuse is refused at once."""

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.http1 import framing, head


class Second:
    """llhttp's reading of the same bytes."""

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.url = b""
        self.body = b""
        self.heads = 0
        self.complete = 0
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_headers_complete(self) -> None:
        self.heads += 1

    def on_message_complete(self) -> None:
        self.complete += 1


def take(data: bytes) -> head.RequestStart | None:
    return head.take_request(bytearray(data))


def test_a_head_keeps_names_values_and_order() -> None:
    buffer = bytearray(b"\r\nPOST /a?b HTTP/1.1\r\nHost: x\r\nX-A:\t v  w \r\nx-a:\r\n\r\nbody")

    start = head.take_request(buffer)

    assert start is not None
    assert (start.method, start.target, start.minor) == (b"POST", b"/a?b", 1)
    assert start.headers == ((b"Host", b"x"), (b"X-A", b"v  w"), (b"x-a", b""))
    assert buffer == b"body"


def test_an_incomplete_head_is_left_alone() -> None:
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    for size in range(len(whole)):
        buffer = bytearray(whole[:size])

        assert head.take_request(buffer) is None
        assert bytes(buffer) == whole[:size]


def test_a_value_of_blanks_and_a_control_is_refused_quickly() -> None:
    data = b"GET / HTTP/1.1\r\nX: " + b" " * 60_000 + b"\x01\r\n\r\n"

    with pytest.raises(head.BadMessage):
        take(data)


def test_a_head_without_an_end_is_refused_at_64_kib() -> None:
    with pytest.raises(head.BadMessage) as refused:
        take(b"GET / HTTP/1.1\r\nX: " + b"a" * (64 << 10))

    assert refused.value.status == 431


_ODD = st.sampled_from(
    [
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b"\x00",
        b"\x0b",
        b"a",
        b"Content-Length",
        b"Transfer-Encoding",
        b"chunked",
        b"0",
        b"3",
        b", ",
        b"POST",
        b"/",
        b" HTTP/1.1",
        b"HTTP/1.0",
        b"\xff",
        b"+",
        b"\r\n\r\n",
        b";",
        b"x: y\r\n",
    ]
)


@given(st.lists(_ODD, max_size=12))
def test_what_we_accept_a_second_parser_reads_the_same_way(pieces: list[bytes]) -> None:
    data = b"POST /p HTTP/1.1\r\nHost: x\r\n" + b"".join(pieces) + b"\r\n\r\n"
    buffer = bytearray(data)
    try:
        start = head.take_request(buffer)
        body = framing.of_request(start) if start is not None else None
        taken = body.feed(bytes(buffer))[0] if body is not None else b""
    except head.BadMessage:
        return
    assert start is not None
    first = data[: len(data) - len(buffer)]
    framed = body is not None and body.done

    second = Second(first)

    assert second.heads == 1
    assert second.url == start.target
    assert [(n.lower(), v.strip(b" \t")) for n, v in second.headers] == [
        (n.lower(), v) for n, v in start.headers
    ]
    if framed:
        assert Second(first + bytes(buffer)[: len(taken) + 64]).body.startswith(taken)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_refused_or_incomplete_and_nothing_else(data: bytes) -> None:
    for parse in (head.take_request, head.take_response):
        try:
            parse(bytearray(data))
        except head.BadMessage as bad:
            assert bad.status in (400, 431, 502, 505)


def test_a_response_head_may_have_no_reason() -> None:
    start = head.take_response(bytearray(b"HTTP/1.1 200\r\nA: b\r\n\r\n"))

    assert start == head.ResponseStart(200, b"", 1, ((b"A", b"b"),))


@pytest.mark.parametrize(
    "line", [b"HTTP/2 200 OK", b"HTTP/1.1 99 No", b"HTTP/1.1 2000 No", b"HTTP/1.1  200 OK", b"ICY 200 OK"]
)
def test_other_status_lines_are_refused(line: bytes) -> None:
    with pytest.raises(head.BadMessage):
        head.take_response(bytearray(line + b"\r\n\r\n"))
