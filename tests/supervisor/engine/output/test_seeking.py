import random
from typing import Any

import pytest

from kt_ledger.layout import RunLayout
from kt_supervisor.engine.output import seeking
from kt_supervisor.engine.output.cursor import Cursor
from kt_supervisor.engine.output.positions import Place
from kt_supervisor.engine.output.segments import Segments


def random_log(files: RunLayout, write: Any, seed: int) -> None:
    chance = random.Random(seed)
    text = b"".join(b"x" * chance.choice([0, 1, 30, 200]) + b"\n" for _ in range(120))
    text += chance.choice([b"", b"unended"])
    number, clock = 1, 0
    while text:
        cut = chance.randint(1, 150)
        clock += chance.randint(0, 3)
        write(files, "out", number, (clock, text[:cut]))
        text = text[cut:]
        number += chance.random() < 0.2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("final", [True, False])
def test_the_last_lines_are_those_that_reading_from_the_start_ends_with(
    files: RunLayout, write: Any, seed: int, final: bool
) -> None:
    random_log(files, write, seed)
    segments = Segments(files, "out")
    everything = [line.data for line in Cursor(segments).lines(final=final)]

    for count in (0, 1, 2, 7, 50, len(everything), len(everything) + 5):
        place, found = seeking.last_lines(segments, count, final=final, block_bytes=64)
        shown = [line.data for line in Cursor(segments, place).lines(final=final)]

        assert (everything[-count:] if count else []) == shown, (seed, count)
        assert min(count, len(everything)) == found, (seed, count)


@pytest.mark.parametrize("seed", range(6))
def test_since_a_moment_is_every_line_whose_first_byte_is_not_older(
    files: RunLayout, write: Any, seed: int
) -> None:
    random_log(files, write, seed)
    segments = Segments(files, "out")
    everything = list(Cursor(segments).lines(final=True))

    for moment in sorted({line.at_ns + shift for line in everything for shift in (0, 1)}):
        place = seeking.since(segments, moment)
        shown = [] if place is None else list(Cursor(segments, place).lines(final=True))

        wanted = [line.data for line in everything if line.at_ns >= moment]
        assert wanted == [line.data for line in shown], (seed, moment)


def test_nothing_is_younger_than_the_future(files: RunLayout, write: Any) -> None:
    write(files, "out", 1, (10, b"a\n"))

    assert seeking.since(Segments(files, "out"), 11) is None
    assert Place() == seeking.since(Segments(files, "out"), 3)


def test_the_last_lines_go_back_no_further_than_asked(files: RunLayout, write: Any) -> None:
    write(files, "out", 1, (10, b"a\nb\nc\n"))

    assert (Place(1, 2), 2) == seeking.last_lines(Segments(files, "out"), 9, final=True, lower=Place(1, 2))
