import json
import random
from typing import Any

import pytest

from kt_ledger.layout import RunLayout
from kt_supervisor.engine.output.cursor import CHARACTER_BYTES, PART_BYTES, Cursor
from kt_supervisor.engine.output.positions import BEGINNING, Place
from kt_supervisor.engine.output.segments import DELETED, Segments


def lines(files: RunLayout, place: Place = BEGINNING, *, final: bool = True) -> list[Any]:
    return list(Cursor(Segments(files, "out"), place).lines(final=final))


def test_a_line_has_the_time_of_its_first_byte_across_writes_and_segments(
    files: RunLayout, write: Any
) -> None:
    write(files, "out", 1, (10, b"x\nbe"), (20, b"g"))
    write(files, "out", 2, (30, b"in\nlast"))

    assert [(10, b"x"), (10, b"begin"), (30, b"last")] == [(line.at_ns, line.data) for line in lines(files)]


def test_an_unfinished_line_waits_for_its_end(files: RunLayout, write: Any) -> None:
    cursor = Cursor(Segments(files, "out"))
    write(files, "out", 1, (10, b"one\ntw"))
    first = [line.data for line in cursor.lines(final=False)]
    write(files, "out", 1, (20, b"o\n"))

    second = [line.data for line in cursor.lines(final=False)]

    assert ([b"one"], [b"two"]) == (first, second)


def test_an_unfinished_line_that_is_shown_comes_again_whole(files: RunLayout, write: Any) -> None:
    cursor = Cursor(Segments(files, "out"))
    write(files, "out", 1, (10, b"one\npass"))
    [_, early] = cursor.lines(final=False, unfinished=True)
    write(files, "out", 1, (20, b"word\n"))

    [whole] = cursor.lines(final=False)

    assert (b"pass", True, Place(1, 4)) == (early.data, early.unfinished, early.place)
    assert (b"password", 10, Place(1, 13)) == (whole.data, whole.at_ns, whole.place)


@pytest.mark.parametrize("seed", range(8))
def test_reading_on_from_any_line_gives_each_later_line_once(files: RunLayout, write: Any, seed: int) -> None:
    chance = random.Random(seed)
    text = (
        b"".join(chance.choice([b"", b"a", b"long" * 9, b"\r", b"\xff\0"]) + b"\n" for _ in range(60))
        + b"end"
    )
    number, clock = 1, 0
    while text:
        cut = chance.randint(1, 40)
        clock += 1
        write(files, "out", number, (clock, text[:cut]))
        text = text[cut:]
        number += chance.random() < 0.3
    everything = lines(files)

    for at, line in enumerate(everything):
        later = lines(files, line.place)

        assert [one.data for one in everything[at + 1 :]] == [one.data for one in later], (seed, at)
        assert [one.at_ns for one in everything[at + 1 :]] == [one.at_ns for one in later], (seed, at)


def test_a_line_of_ten_megabytes_comes_in_parts_of_whole_characters(files: RunLayout, write: Any) -> None:
    line = "é€𝄞x".encode() * 1_000_000
    for number in range(1, 12):
        write(files, "out", number, (number, line[(number - 1) << 20 : number << 20]))
    write(files, "out", 12, (12, b"\nnext\n"))

    found = lines(files)

    assert line == b"".join(part.data for part in found[:-1])
    assert [True] * (len(found) - 2) + [False, False] == [part.part for part in found]
    assert b"next" == found[-1].data
    assert max(len(part.data) for part in found) <= PART_BYTES + CHARACTER_BYTES
    assert all("\ufffd" not in part.data.decode("utf-8", "replace") for part in found)
    assert [part.data for part in found[4:]] == [part.data for part in lines(files, found[3].place)]


def test_bytes_that_are_no_text_are_kept(files: RunLayout, write: Any) -> None:
    write(files, "out", 1, (10, b"\xff\xfe\0\x1b[1m\r\n" + b"\x80" * (PART_BYTES + 5)))

    found = lines(files)

    assert [b"\xff\xfe\0\x1b[1m\r", b"\x80" * PART_BYTES, b"\x80" * 5] == [line.data for line in found]


def test_deleted_segments_are_told_with_their_bytes_and_a_cut_line_is_left_out(
    files: RunLayout, write: Any
) -> None:
    write(files, "out", 3, (30, b"rest of a line\nwhole\n"))
    said = {"out": {"through": 2, "bytes": 70, "whole": False, "ends": {"1": 40, "2": 70}}}
    (files.root / DELETED).write_text(json.dumps(said))

    gap, line = lines(files)
    late, _ = lines(files, Place(2, 10))

    assert gap.gap is not None and late.gap is not None
    assert (70, 20) == (gap.gap.missed_bytes, late.gap.missed_bytes)
    assert b"whole" == line.data


def test_segments_that_somebody_else_deleted_are_a_gap_of_unknown_size(files: RunLayout, write: Any) -> None:
    write(files, "out", 1, (10, b"a\n"))
    write(files, "out", 3, (30, b"cut\nc\n"))

    first, gap, last = lines(files)

    assert (b"a", b"c") == (first.data, last.data)
    assert gap.gap is not None and gap.gap.missed_bytes is None


def test_a_reader_that_was_overtaken_by_a_deletion_goes_on_behind_it(files: RunLayout, write: Any) -> None:
    write(files, "out", 1, (10, b"a\nb"))
    cursor = Cursor(Segments(files, "out"))
    assert [b"a"] == [line.data for line in cursor.lines(final=False)]
    said = {"out": {"through": 1, "bytes": 9, "whole": True, "ends": {"1": 9}}}
    (files.root / DELETED).write_text(json.dumps(said))
    files.segment("out", 1).unlink()
    write(files, "out", 2, (20, b"c\n"))

    gap, line = cursor.lines(final=False)

    assert gap.gap is not None
    assert (7, b"c") == (gap.gap.missed_bytes, line.data)
