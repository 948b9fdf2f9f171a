"""Bodies: cut anywhere, they come out the same; what is behind them is handed back."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.http1 import framing, head


def cuts(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


def drain(body: framing.Body, pieces: Iterator[bytes]) -> tuple[bytes, bytes]:
    got = rest = b""
    for piece in pieces:
        if body.done:
            rest += piece
            continue
        data, behind = body.feed(piece)
        got += data
        rest += behind
    return got, rest


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.lists(st.integers(0, 9), max_size=40))
def test_chunks_cut_anywhere_come_out_whole(pieces: list[bytes], sizes: list[int]) -> None:
    wire = b"".join(framing.chunk(piece) for piece in pieces) + framing.last_chunk(((b"X", b"y"),)) + b"next"
    body = framing.Chunked()

    assert drain(body, cuts(wire, sizes)) == (b"".join(pieces), b"next")
    assert body.done
    assert body.trailers == ((b"X", b"y"),)


@given(st.binary(max_size=60), st.integers(0, 60), st.lists(st.integers(0, 9), max_size=20))
def test_a_sized_body_ends_where_it_says(data: bytes, size: int, sizes: list[int]) -> None:
    body = framing.Sized(size)

    assert drain(body, cuts(data, sizes)) == (data[:size], data[size:])
    assert body.done == (len(data) >= size)


def test_extensions_are_dropped_and_hex_of_either_case_is_read() -> None:
    body = framing.Chunked()

    assert body.feed(b'A;name="v"\r\n0123456789\r\na \r\n0123456789\r\n0\r\n\r\n') == (b"0123456789" * 2, b"")


@pytest.mark.parametrize(
    "wire",
    [
        b"g\r\n",
        b"-1\r\n",
        b"\r\n",
        b" 1\r\n",
        b"1\n",
        b"1\r\nab\r\n",
        b"0x1\r\n",
        b"1" * 16 + b"\r\n",
        b"1;" + b"a" * 2000,
        b"1;\x00\r\n",
        b"0\r\nbad\r\n\r\n",
        b"0\r\nX: " + b"a" * 20000,
    ],
)
def test_malformed_chunks_are_refused_however_they_are_cut(wire: bytes) -> None:
    for step in (1, 7, len(wire)):
        body = framing.Chunked()
        with pytest.raises(head.BadMessage):
            drain(body, (wire[at : at + step] for at in range(0, len(wire), step)))


def test_an_empty_piece_is_not_the_end_of_a_chunked_body() -> None:
    assert framing.chunk(b"") == b""


@given(st.binary(max_size=80))
def test_any_bytes_are_chunks_or_refused_and_nothing_else(data: bytes) -> None:
    try:
        framing.Chunked().feed(data)
    except head.BadMessage as bad:
        assert bad.status in (400, 431)


@pytest.mark.parametrize(
    ("status", "method", "headers", "kind"),
    [
        (200, b"HEAD", ((b"Content-Length", b"5"),), None),
        (204, b"GET", (), None),
        (304, b"GET", ((b"Content-Length", b"5"),), None),
        (200, b"GET", ((b"Transfer-Encoding", b"chunked"), (b"Content-Length", b"5")), framing.Chunked),
        (200, b"GET", ((b"Content-Length", b"5"), (b"content-length", b"5")), framing.Sized),
        (200, b"GET", (), framing.UntilClose),
    ],
)
def test_a_response_is_framed_by_the_first_rule_that_applies(
    status: int, method: bytes, headers: head.Headers, kind: type | None
) -> None:
    body = framing.of_response(head.ResponseStart(status, b"", 1, headers), method=method)

    assert type(body) is (kind or type(None))
