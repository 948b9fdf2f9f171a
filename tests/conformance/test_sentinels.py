import pytest

from kt_conformance import sentinels
from kt_conformance.report import SectionFailed
from kt_conformance.sentinels import Usage


def _line(sequence: int, given: int, made: int) -> str:
    return f'KTESIO_USAGE {{"sequence": {sequence}, "input_tokens": {given}, "output_tokens": {made}}}'


def test_lines_are_read_whatever_else_is_printed() -> None:
    lines = ["hello", _line(0, 1, 2), f"  {_line(1, 3, 4)}\r", "KTESIO is not it"]

    assert [Usage(0, 1, 2), Usage(1, 3, 4)] == sentinels.read(lines)


def test_a_repetition_counts_once() -> None:
    assert [Usage(0, 1, 2), Usage(1, 3, 4)] == sentinels.distinct(
        [Usage(1, 3, 4), Usage(0, 1, 2), Usage(1, 3, 4)]
    )


def test_nothing_is_nothing() -> None:
    assert [] == sentinels.distinct([])


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"sequence": 0, "input_tokens": 1}',
        '{"sequence": 0, "input_tokens": 1.0, "output_tokens": 1}',
        '{"sequence": 0, "input_tokens": true, "output_tokens": 1}',
        '{"sequence": -1, "input_tokens": 1, "output_tokens": 1}',
        '{"sequence": 0, "input_tokens": "1", "output_tokens": 1}',
        '{"sequence": 0, "input_tokens": 1, "output_tokens": 1, "model": "x"}',
        '{"sequence": 0, "input_tokens": 1, "output_tokens": 1, "cached_tokens": 2}',
    ],
)
def test_a_line_that_is_none_fails(payload: str) -> None:
    with pytest.raises(SectionFailed, match="got the usage line"):
        sentinels.read([f"KTESIO_USAGE {payload}"])


@pytest.mark.parametrize(
    ("reports", "says"),
    [
        ([Usage(0, 1, 2), Usage(0, 1, 3)], "wanted the same numbers"),
        ([Usage(0, 0, 0)], "0 asserts that the provider said 0"),
    ],
)
def test_reports_that_cannot_be_true_fail(reports: list[Usage], says: str) -> None:
    with pytest.raises(SectionFailed, match=says):
        sentinels.distinct(reports)


def test_numbers_may_be_left_out_and_reports_repeated() -> None:
    one, two = Usage(1, 1, 1), Usage(5, 2, 2)

    assert [one, two] == sentinels.distinct([one, two, one, two])
