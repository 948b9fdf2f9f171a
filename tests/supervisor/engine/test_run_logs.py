import struct
from pathlib import Path

import pytest

from kt_ledger.layout import RunLayout
from kt_supervisor.engine import run_logs
from kt_supervisor.engine.run_logs import StreamCursor


def write(files: RunLayout, stream: str, number: int, *portions: tuple[int, bytes]) -> None:
    with files.segment(stream, number).open("ab") as log, files.index(stream, number).open("ab") as index:
        for at_ns, data in portions:
            index.write(struct.pack("<QQ", log.tell(), at_ns))
            log.write(data)


@pytest.fixture
def files(tmp_path: Path) -> RunLayout:
    return RunLayout(tmp_path)


def shown(files: RunLayout, *, final: bool = True) -> list[tuple[int, str, str]]:
    cursors = [StreamCursor(files, stream) for stream in ("out", "err")]
    return [(line.at_ns, line.stream, line.text) for line in run_logs.merged(cursors, [], final=final)]


def test_two_streams_are_merged_by_the_time_of_their_writes(files: RunLayout) -> None:
    write(files, "out", 1, (10, b"a\nb\n"), (30, b"d\n"))
    write(files, "err", 1, (20, b"c\n"))

    assert [(10, "a"), (10, "b"), (20, "c"), (30, "d")] == [(at, text) for at, _, text in shown(files)]


def test_a_line_has_the_time_of_its_first_byte_across_writes_and_segments(files: RunLayout) -> None:
    write(files, "out", 1, (10, b"x\nbe"), (20, b"g"))
    write(files, "out", 2, (30, b"in\nlast"))

    assert [(10, "x"), (10, "begin"), (30, "last")] == [(at, text) for at, _, text in shown(files)]


def test_an_unfinished_line_waits_for_its_end(files: RunLayout) -> None:
    cursor = StreamCursor(files, "out")
    write(files, "out", 1, (10, b"one\ntw"))
    first = [line.text for line in cursor.lines(final=False)]
    write(files, "out", 1, (20, b"o\n"))

    second = [line.text for line in cursor.lines(final=False)]

    assert (["one"], ["two"]) == (first, second)


def test_bytes_that_are_no_text_and_endless_lines_are_shown_all_the_same(files: RunLayout) -> None:
    write(files, "out", 1, (10, b"\xff\xfe\r\n" + b"y" * (3 << 20)))

    lines = [text for _, _, text in shown(files)]

    assert "\ufffd\ufffd" == lines[0]
    assert 3 << 20 == sum(len(line) for line in lines[1:])
    assert max(map(len, lines)) < 2 << 20


def test_the_last_lines_come_from_the_last_segments(files: RunLayout) -> None:
    write(files, "out", 1, (10, b"early\n"))
    write(files, "out", 2, (20, b"late\n"))
    write(files, "err", 1, (30, b"why\n"))

    assert ["late", "why"] == run_logs.last_lines(files)
