"""The sentinel: one line of an agent's standard output, read as a report of its own usage.

`KTESIO_USAGE {"sequence": 0, "input_tokens": 128, "output_tokens": 512}`, with `cached_tokens`, `reasoning_tokens`,
`model` and `request_id` where the agent knows them. Laws: a line that does not begin with the literal prefix, its one
space included, is the agent's own business; one that does is either usage or malformed, never ignored and never
repaired; a reason quotes nothing of the line but names of fields. Whitespace around the line is tolerated, and since a
progress bar ends its text with CR, what follows the last such CR counts as a line of its own.

Stricter than Python's `json`, which takes NaN, repeated keys and any number. Pure: takes bytes.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Never

from kt_ledger.values import U64_MAX, Counts

PREFIX = b"KTESIO_USAGE "
"""What a report begins with."""

TEXT_LIMIT = 256
"""The longest `model` or `request_id`, in characters; the longest in use are below 100."""

_AFTER_CR = b"\r" + PREFIX
_REQUIRED = ("sequence", "input_tokens", "output_tokens")
_NUMBERS = (*_REQUIRED, "cached_tokens", "reasoning_tokens")
_TEXTS = ("model", "request_id")
_NAMEABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")
_U64_DIGITS = len(str(U64_MAX))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a well-formed line reports; `sequence` is unique within the Run."""

    sequence: int
    counts: Counts
    model: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that began as a report and is none; `reason` is fit to be shown and kept."""

    reason: str


class _Refused(Exception):
    """Ends the reading of a line."""


def read_line(line: bytes, *, truncated: bool = False) -> Usage | Malformed | None:
    """Return what one line reports; None for a line that is no report.

    Args:
        line: without or with its line end.
        truncated: the line was longer than what is kept, and this is its beginning.
    """
    if PREFIX not in line:
        return None
    start = line.lstrip()
    if not start.startswith(PREFIX):
        _, found, start = line.partition(_AFTER_CR)
        if not found:
            return None
    else:
        start = start[len(PREFIX) :]
    if truncated:
        return Malformed("the line is too long")
    try:
        return _usage(_payload(start))
    except _Refused as refused:
        return Malformed(str(refused))


def _payload(text: bytes) -> dict[str, Any]:
    try:
        found = _DECODER.decode(text.strip().decode("utf-8"))
    except UnicodeDecodeError:
        raise _Refused("not UTF-8") from None
    except (ValueError, RecursionError):
        # Deep nesting cannot be a report either: a report is flat.
        raise _Refused("not JSON") from None
    if not isinstance(found, dict):
        raise _Refused("not a JSON object")
    return found


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("a field is given twice")
    return found


def _integer(digits: str) -> int | None:
    """Return a natural number of the contract's range; None for any other, `-0` included.

    The length is judged before the value: Python's int() of very many digits is slow, or refused.
    """
    if digits.startswith("-") or len(digits) > _U64_DIGITS:
        return None
    value = int(digits)
    return value if value <= U64_MAX else None


def _no_number(_: str) -> None:
    """Stand for a float or an exponent: `1.0` and `1e2` are no counts."""


def _no_constant(_: str) -> Never:
    raise _Refused("not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_no_number, parse_constant=_no_constant
)


def _usage(fields: dict[str, Any]) -> Usage:
    for name in fields:
        if name not in _NUMBERS and name not in _TEXTS:
            raise _Refused(f"unknown field {name}" if _NAMEABLE.fullmatch(name) else "unknown field")
    for name in _REQUIRED:
        if name not in fields:
            raise _Refused(f"{name} is missing")
    for name in _NUMBERS:
        if name in fields and type(fields[name]) is not int:  # a bool is an int to isinstance
            raise _Refused(f"{name} is not an integer from 0 to 2^64-1")
    for name in _TEXTS:
        if name in fields and not _is_text(fields[name]):
            raise _Refused(f"{name} is not a text of 1 to {TEXT_LIMIT} printable characters")
    return Usage(fields["sequence"], _counts(fields), fields.get("model"), fields.get("request_id"))


def _is_text(value: object) -> bool:
    """Return whether a value can be kept and shown: `isprintable` also refuses lone surrogates and NUL."""
    return isinstance(value, str) and 0 < len(value) <= TEXT_LIMIT and value.isprintable()


def _counts(fields: dict[str, Any]) -> Counts:
    """Return disjoint units; the fields' own totals include the cached and the reasoning tokens."""
    cached, reasoning = fields.get("cached_tokens"), fields.get("reasoning_tokens")
    if cached is not None and cached > fields["input_tokens"]:
        raise _Refused("cached_tokens is more than input_tokens")
    if reasoning is not None and reasoning > fields["output_tokens"]:
        raise _Refused("reasoning_tokens is more than output_tokens")
    return Counts(
        input=fields["input_tokens"] - (cached or 0),
        cache_read=cached,
        output=fields["output_tokens"] - (reasoning or 0),
        reasoning=reasoning,
    )
