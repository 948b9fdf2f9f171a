import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.exchange import sse
from kt_gateway.exchange.sse import MAYBE, NO, YES, Framer

DONE = b"[DONE]"


def events(pieces: list[bytes]) -> tuple[list[bytes], bytes]:
    framer, found = Framer(), []
    for piece in pieces:
        framer.push(piece)
        if framer.stray_newline():
            found[-1] += b"\n"
        while (event := framer.pop()) is not None:
            found.append(event)
    return found, framer.take_all()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: 1\n\ndata: 2\n\n", [b"data: 1\n\n", b"data: 2\n\n"]),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", [b"data: 1\r\n\r\n", b"data: 2\r\n\r\n"]),
        (b"data: 1\r\rdata: 2\r\r", [b"data: 1\r\r", b"data: 2\r\r"]),
        (b"data: 1\n\r\ndata: 2\r\n\n", [b"data: 1\n\r\n", b"data: 2\r\n\n"]),
        (b"data: a\ndata: b\r\n: c\rid: 1\n\n", [b"data: a\ndata: b\r\n: c\rid: 1\n\n"]),
        (b"\n\ndata: 1\n\n\n", [b"\n", b"\n", b"data: 1\n\n", b"\n"]),
        (b": ping\n\ndata: 1\n\n", [b": ping\n\n", b"data: 1\n\n"]),
    ],
)
def test_events_end_at_blank_lines_however_they_are_cut(
    stream: bytes, expected: list[bytes], size: int
) -> None:
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]

    assert events(pieces) == (expected, b"")


@given(st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"data: x", b"x", b":"])), st.integers(1, 4))
def test_cutting_changes_no_event_and_loses_no_byte(parts: list[bytes], size: int) -> None:
    stream = b"".join(parts)
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]

    whole, rest_of_whole = events([stream])
    cut, rest_of_cut = events(pieces)

    assert b"".join(cut) + rest_of_cut == stream == b"".join(whole) + rest_of_whole
    data = [sse.data_of(event)[0] for event in whole]
    assert [value for value in data if value is not None] == [
        value for event in cut if (value := sse.data_of(event)[0]) is not None
    ]


def test_an_incomplete_event_is_kept() -> None:
    assert events([b"data: 1\n\nda", b"ta: 2\n"]) == ([b"data: 1\n\n"], b"data: 2\n")


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b"data: 1\n\n", b"1"),
        (b"data:1\n\n", b"1"),
        (b"data:  1\n\n", b" 1"),
        (b"data: 1\r\n\r\n", b"1"),
        (b"data: 1\r\r", b"1"),
        (b"data: {\ndata: }\n\n", b"{\n}"),
        (b"data\n\n", b""),
        (b"data: \n\n", b""),
        (b"data: \r\n\n", b""),
        (b": comment\ndata: 1\nid: 3\n\n", b"1"),
        (b"\xef\xbb\xbfdata: 1\n\n", b"1"),
        (b": only a comment\n\n", None),
        (b"database: 1\n\n", None),
        (b" data: 1\n\n", None),
        (b"\n", None),
        (b"data: cut", b"cut"),
    ],
)
def test_data_is_what_its_lines_say(event: bytes, data: bytes | None) -> None:
    assert sse.data_of(event)[0] == data


def test_the_type_of_an_event_is_its_event_line() -> None:
    assert sse.data_of(b"event: error\ndata: {}\n\n") == (b"{}", b"error")


@pytest.mark.parametrize(
    ("cut", "likeness"),
    [
        (b"", MAYBE),
        (b"d", MAYBE),
        (b"data", MAYBE),
        (b"data:", MAYBE),
        (b"data: ", MAYBE),
        (b"data:   [DO", MAYBE),
        (b"data: [DONE", MAYBE),
        (b"data: [DONE]", YES),
        (b"data:[DONE]", YES),
        (b"data: [DONE]\r", YES),
        (b"data: [DONE] \n\n", YES),
        (b"event: x\ndata: [DONE]\n", YES),
        (b": c\r\nid: 1\rda", MAYBE),
        (b"\xef\xbb", MAYBE),
        (b"\xef\xbb\xbfdata: [DONE]", YES),
        (b'data: "[DONE]"', NO),
        (b"data: {", NO),
        (b"data: 1\ndata: [DONE]", NO),
        (b"data\ndata: [DONE]", NO),
        (b"datas", NO),
        (b": data: [DONE]", NO),
        (b"event: [DONE]", NO),
    ],
)
def test_a_cut_event_may_become_the_terminal_one(cut: bytes, likeness: int) -> None:
    assert sse.begins_terminal(cut, DONE) == likeness


@given(st.integers(0, 14), st.sampled_from([b"", b"event: end\n", b": x\r\n"]))
def test_no_beginning_of_the_terminal_event_is_taken_for_something_else(length: int, before: bytes) -> None:
    assert sse.begins_terminal(before + b"data: [DONE]\n\n"[:length], DONE) != NO


def test_comments_are_found_in_an_event() -> None:
    assert sse.comments_of(b": a\ndata: :b\r\n:c\r\n\r\n") == b": a\n:c\r\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("gap", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_the_end_of_a_long_event_is_found(gap: bytes, size: int) -> None:
    body = b"x" * 100 + b"\ndata: y" + gap + b"data: z"
    finder, at = sse.EventEnd(), 0

    while (end := finder.find(body[at : at + size])) is None:
        at += size

    # A CR LF CR already is a blank line; a LF behind it is a stray line end.
    assert body[: at + end].rstrip(b"\r\n") == b"x" * 100 + b"\ndata: y"
