import datetime
import os
import time
from collections.abc import Iterator

import click
import pytest

from kt_cli.moments import Moment, parse
from kt_ledger.clock import ManualClock

NOON_NS = int(datetime.datetime(2026, 6, 15, 12, 0, tzinfo=datetime.UTC).timestamp()) * 10**9
HOUR_NS = 3600 * 10**9


@pytest.fixture(autouse=True)
def in_utc() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("1h", -1),
        ("90m", -1.5),
        ("1h30m", -1.5),
        ("0.5h", -0.5),
        ("2d", -48),
        ("0s", 0),
        ("11:00", -1),
        ("12:00:00", 0),
        ("13:00", -23),
        ("2026-06-15", -12),
        ("2026-06-15T11:00", -1),
        ("2026-06-15T11:00:00Z", -1),
        ("2026-06-15T11:00:00+02:00", -3),
    ],
)
def test_a_moment_is_a_distance_a_time_of_day_or_a_date(text: str, hours: float) -> None:
    assert NOON_NS + int(hours * HOUR_NS) == parse(text, now_ns=NOON_NS)


def test_a_stamp_with_nanoseconds_keeps_them() -> None:
    assert NOON_NS + 123_456_789 == parse("2026-06-15T12:00:00.123456789Z", now_ns=0)


@pytest.mark.parametrize(
    "text", ["", "10", "10x", "m", "25:00", "12:61", "yesterday", "2026-13-01", "1e3s", "-5m"]
)
def test_anything_else_is_refused_with_what_is_wanted(text: str) -> None:
    with pytest.raises(click.BadParameter, match="wanted 10m"):
        Moment(ManualClock()).convert(text, None, None)
