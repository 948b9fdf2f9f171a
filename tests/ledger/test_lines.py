import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_ledger.lines import Line, LineSplitter


def split(pieces: list[bytes], **facts: object) -> list[Line]:
    splitter = LineSplitter(**facts)
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    tail = splitter.finish()
    return lines + ([tail] if tail else [])


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({min(place, len(data)) for place in at} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r", [b"a"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"\xff\x00\n", [b"\xff\x00"]),
    ],
)
def test_lines_end_at_lf_and_the_last_may_end_with_the_stream(data: bytes, lines: list[bytes]) -> None:
    assert lines == [line.data for line in split([data])]


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\r", b"MARK", b"x" * 9])),
    st.lists(st.integers(0, 80)),
    st.sampled_from([b"", b"MARK"]),
)
def test_lines_do_not_depend_on_how_the_stream_was_cut(
    parts: list[bytes], at: list[int], marker: bytes
) -> None:
    data = b"".join(parts)
    whole = split([data], limit_bytes=12, marker=marker)

    assert whole == split(cut(data, at), limit_bytes=12, marker=marker)
    assert whole == split([data[n : n + 1] for n in range(len(data))], limit_bytes=12, marker=marker)


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"x" * 9, b"MARK"])), st.lists(st.integers(0, 60)))
def test_a_splitter_that_continues_from_the_safe_offset_gives_each_line_once(
    parts: list[bytes], at: list[int]
) -> None:
    data = b"".join(parts)
    whole = split([data], limit_bytes=12)
    lines: list[Line] = []
    offset, skipping = 0, False

    for place in [*sorted(min(place, len(data)) for place in at), len(data)]:
        splitter = LineSplitter(limit_bytes=12, skipping=skipping, fed=offset)
        lines += splitter.feed(data[offset : max(place, offset)])
        offset, skipping = splitter.safe, splitter.skipping
    last = LineSplitter(limit_bytes=12, skipping=skipping, fed=offset)
    lines += last.feed(data[offset:])
    tail = last.finish()

    assert whole == lines + ([tail] if tail else [])


def test_a_line_that_is_too_long_is_given_once_at_once_and_its_rest_is_skipped() -> None:
    splitter = LineSplitter(limit_bytes=4)

    assert [] == splitter.feed(b"abcd")
    assert [Line(b"abcd", truncated=True)] == splitter.feed(b"e")
    assert (5, True) == (splitter.safe, splitter.skipping)
    assert [] == splitter.feed(b"MORE")
    assert [Line(b"next")] == splitter.feed(b"f\nnext\n")
    assert (16, False) == (splitter.safe, splitter.skipping)


def test_an_unfinished_line_of_ten_megabytes_is_held_in_bounded_memory() -> None:
    splitter = LineSplitter(limit_bytes=1 << 16)
    piece = b"x" * 4096
    tracemalloc.start()

    for _ in range(10 * 256):
        splitter.feed(piece)

    assert tracemalloc.get_traced_memory()[1] < 1 << 19
    tracemalloc.stop()
    assert 10 << 20 == splitter.safe


def test_the_safe_offset_is_the_start_of_the_unfinished_line() -> None:
    splitter = LineSplitter(fed=100)

    splitter.feed(b"one\ntw")
    splitter.feed(b"o")

    assert (107, 104) == (splitter.fed, splitter.safe)
