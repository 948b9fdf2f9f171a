"""A provider's usage object turned into disjoint counts, by where its dialect keeps each unit.

Laws: only whole, non-negative JSON integers up to 2^64-1 count; what is absent, null or no count stays unknown; an
object of nothing but zeros is not a measurement; the parts handed out never exceed what the provider reported.
"""

import json
from dataclasses import dataclass
from typing import Any

from kt_ledger.values import U64_MAX, Counts

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """Where a dialect keeps each unit: the first path that holds a count wins.

    `input` and `output` are the provider's own sums; the others are parts of them, unless the sums say otherwise.
    """

    input: tuple[Path, ...]
    output: tuple[Path, ...]
    total: tuple[Path, ...]
    cache_read: tuple[Path, ...]
    cache_write: tuple[Path, ...]
    reasoning: tuple[Path, ...]
    audio_input: tuple[Path, ...]
    audio_output: tuple[Path, ...]
    image_input: tuple[Path, ...]
    image_output: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a usage object says: the counts, and whether both sums were there and valid."""

    counts: Counts
    whole: bool
    all_zero: bool


def measure(usage: dict[str, Any], shape: Shape) -> Measured | None:
    """Return the disjoint counts of a usage object, None where neither sum is a valid count."""
    prompt = _count(usage, shape.input)
    completion = _count(usage, shape.output)
    if prompt is None and completion is None:
        return None
    total = _count(usage, shape.total)
    parts = {unit: _count(usage, getattr(shape, unit)) for unit in _PARTS}
    counts = Counts(**_inputs(prompt, completion, total, parts), **_outputs(prompt, completion, total, parts))
    all_zero = not any(value for value in (prompt, completion, total, *parts.values()))
    return Measured(counts, prompt is not None and completion is not None, all_zero)


_PARTS = (
    "cache_read",
    "cache_write",
    "reasoning",
    "audio_input",
    "audio_output",
    "image_input",
    "image_output",
)

Parts = dict[str, int | None]


def _inputs(prompt: int | None, completion: int | None, total: int | None, parts: Parts) -> Parts:
    cached, written = parts["cache_read"], parts["cache_write"]
    if prompt is None:
        return {"cache_read": cached, "cache_write_5m": written}
    inside = prompt
    if _cache_is_outside(prompt, completion, total, parts):
        inside += (cached or 0) + (written or 0)
    # A part larger than what is left overlaps another part (cached audio): it is counted once.
    rest, cached = _take(inside, cached)
    rest, written = _take(rest, written)
    rest, audio = _take(rest, parts["audio_input"])
    rest, image = _take(rest, parts["image_input"])
    return {
        "input": rest,
        "cache_read": cached,
        "cache_write_5m": written,
        "audio_input": audio,
        "image_input": image,
    }


def _cache_is_outside(prompt: int, completion: int | None, total: int | None, parts: Parts) -> bool:
    cache = (parts["cache_read"] or 0) + (parts["cache_write"] or 0)
    if cache == 0:
        return False
    output = (completion or 0, (completion or 0) + (parts["reasoning"] or 0))
    if total is not None and any(total == prompt + out for out in output):
        return False
    return cache > prompt or (total is not None and any(total == prompt + cache + out for out in output))


def _outputs(prompt: int | None, completion: int | None, total: int | None, parts: Parts) -> Parts:
    if completion is None:
        return {"reasoning": parts["reasoning"]}
    reasoning = parts["reasoning"]
    if reasoning is None:
        reasoning = hidden = _hidden(prompt, completion, total, parts)
        inside = completion + (hidden or 0)
    else:
        inside = completion + (reasoning if _reasoning_is_on_top(prompt, completion, total, reasoning) else 0)
    rest, reasoning = _take(inside, reasoning)
    rest, audio = _take(rest, parts["audio_output"])
    rest, image = _take(rest, parts["image_output"])
    return {"output": rest, "reasoning": reasoning, "audio_output": audio, "image_output": image}


def _reasoning_is_on_top(prompt: int | None, completion: int, total: int | None, reasoning: int) -> bool:
    # xAI reports completion without reasoning; only its total shows it. OpenAI's total is prompt + completion.
    if total is None or prompt is None:
        return reasoning > completion
    return total >= prompt + completion + reasoning


def _hidden(prompt: int | None, completion: int, total: int | None, parts: Parts) -> int | None:
    # Gemini's compatible API leaves thinking out of completion and has no details: only its total shows it.
    if not prompt or total is None or total <= prompt + completion:
        return None
    if _cache_is_outside(prompt, completion, total, parts):
        return None
    return total - prompt - completion


def _take(rest: int, part: int | None) -> tuple[int, int | None]:
    if part is None:
        return rest, None
    part = min(part, rest)
    return rest - part, part


def _count(usage: dict[str, Any], paths: tuple[Path, ...]) -> int | None:
    for path in paths:
        value: Any = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if type(value) is int and 0 <= value <= U64_MAX:
            return value
    return None


RAW_LIMIT_BYTES = 8 << 10
RAW_DEPTH = 4


def reduce(usage: dict[str, Any]) -> str | None:
    """Return a usage object as JSON of keys and numbers only, None where that would exceed 8 KiB."""
    text = json.dumps(_numbers(usage, RAW_DEPTH), separators=(",", ":"), allow_nan=False)
    return text if len(text) <= RAW_LIMIT_BYTES else None


def _numbers(value: dict[str, Any], depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, member in value.items():
        if isinstance(member, dict) and depth > 1:
            kept[name[:100]] = _numbers(member, depth - 1)
        elif _is_plain_number(member):
            kept[name[:100]] = member
    return kept


def _is_plain_number(value: Any) -> bool:
    if type(value) is int:
        return -U64_MAX <= value <= U64_MAX
    return type(value) is float and value == value and abs(value) != float("inf")
