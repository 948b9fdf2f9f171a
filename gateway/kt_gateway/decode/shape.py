"""Where a dialect keeps each unit of a usage object, as data, and how one number is read off it."""

import math
from dataclasses import dataclass, field
from typing import Any, Final

from kt_ledger.values import U64_MAX, Counts

Path = tuple[str, ...]

INSIDE: Final = "inside"
"""A part is contained in its sum."""
BESIDE: Final = "beside"
"""A part comes on top of what the provider calls the sum."""
BY_TOTAL: Final = "by_total"
"""Servers of this dialect differ: the reported total decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Where a provider says what it charged, and how many nano-dollars one unit of that number is.

    `proof`: paths of which one must be there for a cost of zero to be believed: servers that know no price send 0 too.
    """

    path: Path
    nanousd: str = "1000000000"  # decimal digits
    proof: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Where a dialect keeps each unit: the first path that holds a count wins.

    `input` and `output` are the provider's own sums; the others are parts of them, or stand beside them.
    """

    input: tuple[Path, ...]
    output: tuple[Path, ...] = ()
    total: tuple[Path, ...] = ()
    cache_read: tuple[Path, ...] = ()
    cache_write: tuple[Path, ...] = ()  # all lifetimes together
    cache_write_5m: tuple[Path, ...] = ()
    cache_write_1h: tuple[Path, ...] = ()
    reasoning: tuple[Path, ...] = ()
    audio_input: tuple[Path, ...] = ()
    audio_cached: tuple[Path, ...] = ()  # the part of cache_read that is audio
    audio_output: tuple[Path, ...] = ()
    image_input: tuple[Path, ...] = ()
    image_cached: tuple[Path, ...] = ()
    image_output: tuple[Path, ...] = ()
    more_input: tuple[Path, ...] = ()  # input that the provider counts beside its own sum
    seconds: tuple[Path, ...] = ()
    tool_calls: tuple[Path, ...] = ()  # calls of the provider's own tools, charged one by one
    cache: str = BY_TOTAL
    reasoning_stands: str = BY_TOTAL
    hidden_reasoning: bool = False  # a total above the sums shows reasoning that nothing else does
    output_wanted: bool = True  # whether something is missing where no output is reported
    input_from_total: bool = False  # an object with nothing but a total tells of input
    zeros_count: bool = False  # nothing but zeros is a measurement too
    bare_output: str = "output"  # the unit of an output of which no parts are named
    cost: tuple[Cost, ...] = ()
    places: tuple[tuple[str, tuple[Path, ...]], ...] = field(
        init=False
    )  # the units that have a place, with it

    names: tuple[bytes, ...] = field(
        init=False
    )  # of the sums, quoted: a document that repeats itself has one twice

    def __post_init__(self) -> None:
        """Work out once what each reading needs."""
        units = ("input", "output", "total", *PARTS)
        object.__setattr__(
            self, "places", tuple((unit, paths) for unit in units if (paths := getattr(self, unit)))
        )
        last = {path[-1] for paths in (self.input, self.output, self.total) for path in paths}
        object.__setattr__(self, "names", tuple(sorted(b'"%b"' % name.encode() for name in last | {"usage"})))


PARTS: tuple[str, ...] = (
    "cache_read",
    "cache_write",
    "cache_write_5m",
    "cache_write_1h",
    "reasoning",
    "audio_input",
    "audio_cached",
    "audio_output",
    "image_input",
    "image_cached",
    "image_output",
    "more_input",
    "seconds",
    "tool_calls",
)
"""The units that `Shape` may say a place for, besides the sums."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a usage object says: the counts, and what speaks against them."""

    counts: Counts
    whole: bool  # both sums were there, and no number was none
    adds_up: bool  # the parts and sums fit together
    all_zero: bool


class _NoCount:
    """Something stands where a count should, and is none."""


NO_COUNT: Final = _NoCount()


def value_at(usage: dict[str, Any], path: Path) -> Any:
    """Return what stands at a path; None where nothing does."""
    value: Any = usage
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def count(usage: dict[str, Any], paths: tuple[Path, ...]) -> int | _NoCount | None:
    """Return the first count; `NO_COUNT` where there is none but something that pretends to be; None otherwise."""
    pretends = False
    for path in paths:
        value = usage.get(path[0])
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            continue
        if type(value) is int and 0 <= value <= U64_MAX:
            return value
        pretends = pretends or isinstance(value, int | float | str)
    return NO_COUNT if pretends else None


def seconds(usage: dict[str, Any], paths: tuple[Path, ...]) -> int | _NoCount | None:
    """Return a length in seconds; a second that has begun counts, since the ledger keeps whole ones."""
    found = count(usage, paths)
    if found is NO_COUNT:
        for path in paths:
            value = value_at(usage, path)
            if type(value) is float and math.isfinite(value) and 0 <= value <= U64_MAX:
                return math.ceil(value)
    return found
