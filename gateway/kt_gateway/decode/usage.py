"""A provider's usage object turned into disjoint counts, by where its dialect keeps each unit.

Laws: only whole, non-negative JSON integers up to 2^64-1 count; what is absent, null or no count stays unknown; an
object of nothing but zeros is not a measurement (unless its dialect says so); the parts handed out never exceed what
the provider reported; what does not add up is counted as its sums say, and said to be so.
"""

import json
from typing import Any

from kt_gateway.decode.shape import BESIDE, BY_TOTAL, NO_COUNT, PARTS, Measured, Shape, count, seconds
from kt_ledger.values import U64_MAX, Counts

Parts = dict[str, int | None]
_UNKNOWN: Parts = dict.fromkeys(("input", "output", "total", *PARTS))


def measure(usage: dict[str, Any], shape: Shape) -> Measured | None:
    """Return the disjoint counts of a usage object, None where neither sum (nor a length) is a valid count."""
    read = _Reading(usage, shape)
    if read.prompt is None and read.completion is None and read.parts["seconds"] is None:
        return None
    counts = Counts(
        **_inputs(read), **_outputs(read), seconds=read.parts["seconds"], tool_calls=read.parts["tool_calls"]
    )
    return Measured(counts, read.whole, read.adds_up, read.all_zero)


class _Reading:
    """The numbers of one usage object, by unit, before anybody decides which part is inside which."""

    def __init__(self, usage: dict[str, Any], shape: Shape) -> None:
        found: dict[str, Any] = {unit: count(usage, paths) for unit, paths in shape.places}
        if shape.seconds:
            found["seconds"] = seconds(usage, shape.seconds)
        self.shape = shape
        self._invalid = NO_COUNT in found.values()
        if self._invalid:
            found = {unit: None if value is NO_COUNT else value for unit, value in found.items()}
        self.parts: Parts = {**_UNKNOWN, **found}
        self.prompt = self.parts["input"]
        self.completion = self.parts["output"]
        self.total = self.parts["total"] or None  # a total of zero beside other numbers is nobody's sum
        if self.prompt is None and shape.input_from_total:
            self.prompt = self.parts["total"]
        self.all_zero = not shape.zeros_count and not any(self.parts.values())
        self._join_writes()

    def _join_writes(self) -> None:
        """Make `cache_write` the sum of its lifetimes where only these are given, and no less than the long one."""
        short, long = self.parts["cache_write_5m"], self.parts["cache_write_1h"]
        if self.parts["cache_write"] is None and (short is not None or long is not None):
            self.parts["cache_write"] = (short or 0) + (long or 0)

    def of(self, unit: str) -> int:
        """Return a part, 0 where it is unknown."""
        return self.parts[unit] or 0

    @property
    def cache(self) -> int:
        """Everything that has to do with a cache."""
        return self.of("cache_read") + self.of("cache_write")

    @property
    def whole(self) -> bool:
        """Whether both sums are there and nothing that ought to be a count is none."""
        if self._invalid:
            return False
        if self.prompt is None and self.completion is None:
            return self.parts["seconds"] is not None
        return self.prompt is not None and (self.completion is not None or self._closed_without_output)

    @property
    def _closed_without_output(self) -> bool:
        # Google's JSON leaves out numbers that are zero: where the total is the sum of the rest, nothing is missing.
        if not self.shape.output_wanted:
            return True
        if self.total is None or self.completion is not None or self._invalid:
            return False
        return self.total in self._sums(0)

    @property
    def adds_up(self) -> bool:
        """Whether the total, where there is one, is a sum of the parts in any reading that a provider may have."""
        prompt, completion = self.prompt, self.completion
        if (
            not self.cache
            and prompt is not None
            and completion is not None
            and self.total == prompt + completion
        ):
            return True  # nearly every object there is
        if self.total is None or prompt is None or completion is None:
            return self.cache_fits
        hidden = self.shape.hidden_reasoning and self.parts["reasoning"] is None
        return self.cache_fits and (
            self.total in self._sums(completion) or (hidden and self.total > prompt + completion)
        )

    @property
    def cache_fits(self) -> bool:
        """Whether cached tokens can be where the dialect, or the total, says that they are."""
        # Each for itself: what is read from a cache may be written to another one (Gemini through OpenRouter).
        if self.prompt is None or self.shape.cache == BESIDE:
            return True
        if max(self.of("cache_read"), self.of("cache_write")) <= self.prompt:
            return True
        return self.total is not None and self.total in {
            self.prompt + self.cache + out for out in self._outs(self.completion or 0)
        }

    def _outs(self, completion: int) -> tuple[int, int]:
        return completion, completion + self.of("reasoning")

    def _sums(self, completion: int) -> set[int]:
        prompt = self.prompt or 0
        ins = {prompt, prompt + self.cache}
        ins |= {more + self.of("more_input") for more in ins}
        return {more + out for more in ins for out in self._outs(completion)}


def _inputs(read: _Reading) -> Parts:
    cached, written, more = (read.parts[unit] for unit in ("cache_read", "cache_write", "more_input"))
    if read.prompt is None:
        return {"input": more, "cache_read": cached, **_by_lifetime(read, written)}
    inside = read.prompt + (more or 0)
    if _cache_is_outside(read):
        inside += (cached or 0) + (written or 0)
    # A part larger than what is left overlaps another part (cached audio): it is counted once.
    rest, cached = _take(inside, cached)
    rest, written = _take(rest, written)
    rest, audio = _take(rest, _without(read.parts["audio_input"], read.of("audio_cached")))
    rest, image = _take(rest, _without(read.parts["image_input"], read.of("image_cached")))
    return {
        "input": rest,
        "cache_read": cached,
        **_by_lifetime(read, written),
        "audio_input": audio,
        "image_input": image,
    }


def _without(part: int | None, cached: int) -> int | None:
    return None if part is None else max(0, part - cached)


def _by_lifetime(read: _Reading, written: int | None) -> Parts:
    """Return writes by lifetime; what names none lives five minutes, as with all who write without saying so."""
    long = read.parts["cache_write_1h"]
    if written is None or long is None:
        return {"cache_write_5m": written}
    long = min(long, written)
    return {"cache_write_5m": written - long, "cache_write_1h": long}


def _cache_is_outside(read: _Reading) -> bool:
    if read.cache == 0 or read.shape.cache != BY_TOTAL:
        return read.shape.cache == BESIDE
    prompt, total = read.prompt or 0, read.total
    outs = read._outs(read.completion or 0)
    if total is not None and any(total == prompt + out for out in outs):
        return False
    return read.cache > prompt or (
        total is not None and any(total == prompt + read.cache + out for out in outs)
    )


def _outputs(read: _Reading) -> Parts:
    completion, reasoning = read.completion, read.parts["reasoning"]
    if completion is None:
        return {"reasoning": reasoning}
    if reasoning is None:
        reasoning = hidden = _hidden(read, completion)
        inside = completion + (hidden or 0)
    else:
        inside = completion + (reasoning if _reasoning_is_on_top(read, completion, reasoning) else 0)
    rest, reasoning = _take(inside, reasoning)
    audio, image = read.parts["audio_output"], read.parts["image_output"]
    if audio is None and image is None and read.shape.bare_output != "output":
        return {read.shape.bare_output: rest, "reasoning": reasoning}
    rest, audio = _take(rest, audio)
    rest, image = _take(rest, image)
    return {"output": rest, "reasoning": reasoning, "audio_output": audio, "image_output": image}


def _reasoning_is_on_top(read: _Reading, completion: int, reasoning: int) -> bool:
    # xAI reports completion without reasoning; only its total shows it. OpenAI's total is prompt + completion.
    if read.shape.reasoning_stands != BY_TOTAL:
        return read.shape.reasoning_stands == BESIDE
    if read.total is None or read.prompt is None:
        return reasoning > completion
    return read.total >= read.prompt + completion + reasoning


def _hidden(read: _Reading, completion: int) -> int | None:
    # Gemini's compatible API leaves thinking out of completion and has no details: only its total shows it.
    prompt, total = read.prompt, read.total
    if not read.shape.hidden_reasoning or not prompt or total is None or total <= prompt + completion:
        return None
    if _cache_is_outside(read):
        return None
    return total - prompt - completion


def _take(rest: int, part: int | None) -> tuple[int, int | None]:
    if part is None:
        return rest, None
    part = min(part, rest)
    return rest - part, part


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
