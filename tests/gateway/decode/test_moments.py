import pytest

from kt_gateway.decode import moments
from kt_gateway.decode.moments import Moment

NOW_NS = 1_800_000_000_123_456_789
S = 10**9
NOW = Moment(NOW_NS)


@pytest.mark.parametrize(
    ("text", "after_ns"),
    [
        ("0", 0),
        ("20", 20 * S),
        ("1.5", 3 * S // 2),
        ("12ms", 12 * 10**6),
        ("6m0s", 360 * S),
        ("2m59.56s", 179_560_000_000),
        ("1h2m3s", 3723 * S),
        ("34.074824224s", 34_074_824_224),
        ("1d", 86400 * S),
        ("7.66µs", 7660),
    ],
)
def test_waits_count_from_the_answer(text: str, after_ns: int) -> None:
    assert NOW_NS + after_ns == moments.by_shape(text, NOW)


@pytest.mark.parametrize(
    ("text", "at_ns"),
    [
        ("1800000060", 1_800_000_060 * S),
        ("1800000060000", 1_800_000_060 * S),
        ("1800000060.5", 1_800_000_060 * S + S // 2),
        ("2027-01-15T08:00:30Z", 1_800_000_030 * S),
        ("2027-01-15T09:00:30+01:00", 1_800_000_030 * S),
        ("2027-01-15T08:00:30.25Z", 1_800_000_030 * S + S // 4),
        ("2027-01-15T08:00:30", 1_800_000_030 * S),
    ],
)
def test_dates_are_dates_in_whatever_notation(text: str, at_ns: int) -> None:
    assert at_ns == moments.by_shape(text, NOW)


def test_an_http_date_is_by_the_clock_of_who_wrote_it() -> None:
    theirs = moments.http_date("Fri, 15 Jan 2027 07:00:00 GMT")

    at_ns = moments.seconds_or_date("Fri, 15 Jan 2027 07:00:30 GMT", Moment(NOW_NS, theirs))

    assert NOW_NS + 30 * S == at_ns
    assert 1_799_996_430 * S == moments.seconds_or_date("Fri, 15 Jan 2027 07:00:30 GMT", NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "soon",
        "1e400",
        "nan",
        "inf",
        "6m0",
        "m6",
        "١٢x",
        "9" * 65,
        "Fri, 99 Foo 2027 99:99:99",
        "1.2.3",
        "0x10",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    found = [read(text, NOW) for read in (moments.by_shape, moments.seconds_or_date, moments.milliseconds)]

    assert [None, None, None] == found
