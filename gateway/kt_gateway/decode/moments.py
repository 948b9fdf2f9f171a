"""Times as providers write them: seconds, milliseconds, Go's durations, RFC 3339, HTTP dates, seconds since 1970.

Every reader takes a text and the moment of the answer and returns nanoseconds since 1970, None where the text says
nothing that it understands. Whole numbers throughout: a float would lose the nanoseconds.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime

TEXT_LIMIT = 64
_NUMBER = re.compile(r"\d{1,20}(\.\d{1,20})?")
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(h|ms|m|s|us|µs|ns|d)")
_UNIT_NS = {
    "d": 86400 * 10**9,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 1000,
    "µs": 1000,
    "ns": 1,
}
_EPOCH_S = 10**8
"""A number of seconds from here on is a date (1973 and later), no wait (three years and more)."""
_EPOCH_MS = 10**11
"""From here on it is in milliseconds: in seconds it would be the year 5138."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When an answer came: by our clock, and by the provider's where it said so (the Date header)."""

    now_ns: int
    theirs_ns: int | None = None


def seconds_or_date(text: str, moment: Moment) -> int | None:
    """Read `retry-after`: seconds from now, or an HTTP date, which is by the provider's clock."""
    if _NUMBER.fullmatch(text):
        return moment.now_ns + _scaled(text, 10**9)
    at_ns = http_date(text)
    if at_ns is None or moment.theirs_ns is None:
        return at_ns
    return moment.now_ns + at_ns - moment.theirs_ns


def milliseconds(text: str, moment: Moment) -> int | None:
    """Read `retry-after-ms`."""
    return moment.now_ns + _scaled(text, 10**6) if _NUMBER.fullmatch(text) else None


def by_shape(text: str, moment: Moment) -> int | None:
    """Read what differs by provider under one name: a wait, a duration with units, or a date in some notation."""
    if len(text) > TEXT_LIMIT:
        return None
    if _NUMBER.fullmatch(text):
        number = Decimal(text)
        if number >= _EPOCH_MS:
            return _scaled(text, 10**6)
        return _scaled(text, 10**9) + (moment.now_ns if number < _EPOCH_S else 0)
    duration_ns = _duration_ns(text)
    if duration_ns is not None:
        return moment.now_ns + duration_ns
    return rfc3339(text)


def http_date(text: str) -> int | None:
    """Read an HTTP date (RFC 9110 section 5.6.7)."""
    if not text or len(text) > TEXT_LIMIT:
        return None
    try:
        return _since_1970(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def rfc3339(text: str) -> int | None:
    """Read a date and time of RFC 3339; one without an offset is taken for UTC."""
    try:
        return _since_1970(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _since_1970(at: datetime) -> int:
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    passed = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (passed.days * 86400 + passed.seconds) * 10**9 + passed.microseconds * 1000


def _duration_ns(text: str) -> int | None:
    """Read a duration as Go writes it (`6m0s`, `1h2m3.5s`, `12ms`)."""
    total_ns, at = 0, 0
    for part in _PART.finditer(text):
        if part.start() != at:
            return None
        total_ns += _scaled(part[1], _UNIT_NS[part[2]])
        at = part.end()
    return total_ns if text and at == len(text) else None


def _scaled(number: str, unit_ns: int) -> int:
    return int(Decimal(number) * unit_ns)
