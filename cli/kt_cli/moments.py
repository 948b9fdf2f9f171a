"""A moment as people type it: how long ago, a time of day, or a whole date. Pure: the clock is an argument."""

import datetime
import re

import click

from kt_ledger.clock import Clock, SystemClock

WANTED = (
    "10m, 1h30m or 2d (ago), 14:30 or 14:30:05 (today, or yesterday, in UTC like all times that are shown), "
    "2026-01-31, or 2026-01-31T14:30:00Z"
)
_UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_AGO = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?", re.ASCII)
_ZERO = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Moment(click.ParamType[int]):
    """A moment in the past, as wall-clock nanoseconds."""

    name = "when"

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the nanoseconds since 1970 UTC; a time without an offset is UTC, as all times that are shown."""
        if isinstance(value, int):
            return value
        now_ns = self._clock.wall_ns()
        try:
            found = parse(str(value), now_ns=now_ns)
        except (ValueError, OverflowError):
            self.fail(f"got {str(value)[:40]!r}, wanted {WANTED}", param, ctx)
        return max(0, found)


def parse(text: str, *, now_ns: int) -> int:
    """Return the moment that `text` names, seen from `now_ns`. Raises ValueError."""
    if _AGO.fullmatch(text):
        ago_s = sum(float(part[:-1]) * _UNITS_S[part[-1]] for part in re.findall(r"[\d.]+[dhms]", text))
        return now_ns - int(ago_s * 1e9)
    if (clock := _CLOCK.fullmatch(text)) is not None:
        hour, minute, second = (int(part or 0) for part in clock.groups())
        now = datetime.datetime.fromtimestamp(now_ns // 1_000_000_000, datetime.UTC)
        today = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
        today_ns = _nanoseconds(today)
        return today_ns if today_ns <= now_ns else _nanoseconds(today - datetime.timedelta(days=1))
    return _nanoseconds(datetime.datetime.fromisoformat(text)) + _beyond_microseconds(text)


def _nanoseconds(moment: datetime.datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return (aware - _ZERO) // datetime.timedelta(microseconds=1) * 1_000


def _beyond_microseconds(text: str) -> int:
    """Return what the seventh to ninth digit of a fraction add: `datetime` cuts them off."""
    fraction = re.search(r"[.,]\d{6}(\d{1,3})", text)
    return int(fraction[1].ljust(3, "0")) if fraction else 0
