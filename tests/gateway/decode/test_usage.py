import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.decode import usage
from kt_gateway.decode.chat import SHAPE
from kt_ledger.values import U64_MAX, Counts


def counts_of(**members: Any) -> Counts:
    measured = usage.measure(members, SHAPE)
    assert measured is not None
    return measured.counts


def test_cached_tokens_are_a_part_of_the_prompt() -> None:
    counts = counts_of(prompt_tokens=100, completion_tokens=5, prompt_tokens_details={"cached_tokens": 60})

    assert Counts(input=40, cache_read=60, output=5) == counts


def test_more_cached_than_prompt_tokens_stand_beside_it() -> None:
    counts = counts_of(prompt_tokens=10, completion_tokens=5, prompt_tokens_details={"cached_tokens": 60})

    assert Counts(input=10, cache_read=60, output=5) == counts


def test_the_total_shows_that_cached_tokens_stand_beside_the_prompt() -> None:
    counts = counts_of(prompt_tokens=100, completion_tokens=5, total_tokens=165, cached_tokens=60)

    assert Counts(input=100, cache_read=60, output=5) == counts


def test_cache_writes_are_a_part_of_the_prompt() -> None:
    details = {"cached_tokens": 10, "cache_write_tokens": 50}

    counts = counts_of(
        prompt_tokens=100, completion_tokens=5, total_tokens=105, prompt_tokens_details=details
    )

    assert Counts(input=40, cache_read=10, cache_write_5m=50, output=5) == counts


def test_a_miss_is_no_write() -> None:
    counts = counts_of(
        prompt_tokens=10, completion_tokens=1, prompt_cache_hit_tokens=4, prompt_cache_miss_tokens=6
    )

    assert Counts(input=6, cache_read=4, output=1) == counts


@pytest.mark.parametrize(
    ("completion", "reasoning", "total", "visible", "thought"),
    [
        (100, 64, 120, 36, 64),  # inside: total is prompt + completion
        (100, 64, 184, 100, 64),  # on top: total has all three
        (100, 64, None, 36, 64),  # nothing says otherwise
        (10, 64, None, 10, 64),  # cannot be inside
        (10, 11, 30, 0, 10),  # inconsistent: never more than was reported
        (100, 0, 120, 100, 0),
        (100, None, 120, 100, None),
        (100, None, 150, 100, 30),  # only the total shows it
    ],
)
def test_the_total_decides_where_reasoning_stands(
    completion: int, reasoning: int | None, total: int | None, visible: int, thought: int | None
) -> None:
    counts = counts_of(
        prompt_tokens=20,
        completion_tokens=completion,
        total_tokens=total,
        completion_tokens_details={"reasoning_tokens": reasoning},
    )

    assert Counts(input=20, output=visible, reasoning=thought) == counts


@pytest.mark.parametrize("total", [0, None, 3, -1])
def test_no_part_is_derived_from_a_bad_total(total: int | None) -> None:
    counts = counts_of(prompt_tokens=10, completion_tokens=5, total_tokens=total)

    assert Counts(input=10, output=5) == counts


def test_audio_that_overlaps_the_cache_is_counted_once() -> None:
    details = {"cached_tokens": 80, "audio_tokens": 50}

    counts = counts_of(prompt_tokens=100, completion_tokens=1, prompt_tokens_details=details)

    assert Counts(input=0, cache_read=80, audio_input=20, output=1) == counts


@pytest.mark.parametrize("bad", [-1, True, False, 1.0, "7", None, [], {}, U64_MAX + 1, 1e2])
def test_what_is_no_count_is_unknown(bad: object) -> None:
    measured = usage.measure({"prompt_tokens": 9, "completion_tokens": bad}, SHAPE)

    assert measured is not None
    assert Counts(input=9) == measured.counts
    assert not measured.whole


def test_the_largest_count_is_a_count() -> None:
    assert Counts(input=U64_MAX, output=0) == counts_of(prompt_tokens=U64_MAX, completion_tokens=0)


@pytest.mark.parametrize(
    "empty", [{}, {"prompt_tokens": None}, {"total_tokens": 9}, {"usage": {"prompt_tokens": 9}}]
)
def test_an_object_without_either_sum_measures_nothing(empty: dict[str, Any]) -> None:
    assert usage.measure(empty, SHAPE) is None


def test_nothing_but_zeros_is_said_to_be_so() -> None:
    zeros = usage.measure({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, SHAPE)
    half = usage.measure({"prompt_tokens": 0, "completion_tokens": 3}, SHAPE)

    assert zeros is not None
    assert zeros.all_zero
    assert half is not None
    assert not half.all_zero


NUMBERS = st.none() | st.integers(-2, 200) | st.booleans() | st.floats() | st.text(max_size=2)
DETAILS = st.none() | st.dictionaries(
    st.sampled_from(
        ["cached_tokens", "audio_tokens", "reasoning_tokens", "image_tokens", "cache_write_tokens"]
    ),
    NUMBERS,
)


@given(NUMBERS, NUMBERS, NUMBERS, DETAILS, DETAILS)
def test_the_parts_never_exceed_what_was_reported(
    prompt: Any, completion: Any, total: Any, inner: Any, outer: Any
) -> None:
    object_ = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        "prompt_tokens_details": inner,
        "completion_tokens_details": outer,
    }

    measured = usage.measure(object_, SHAPE)

    if measured is None:
        return
    counts = measured.counts
    assert all(value >= 0 for value in counts.to_json().values())
    if type(prompt) is int and prompt >= 0:
        beside = (counts.cache_read or 0) + (counts.cache_write_5m or 0)
        assert counts.input_total in (prompt, prompt + beside)
    if type(completion) is int and completion >= 0:
        assert counts.output_total in (completion, completion + (counts.reasoning or 0))


def test_the_raw_object_is_reduced_to_names_and_numbers() -> None:
    raw = {
        "prompt_tokens": 1,
        "note": "secret",
        "list": [1],
        "flag": True,
        "nothing": None,
        "time": 0.5,
        "huge": 10**40,
        "details": {"cached_tokens": 2, "text": "secret"},
    }

    reduced = usage.reduce(raw)

    assert reduced is not None
    assert json.loads(reduced) == {"prompt_tokens": 1, "time": 0.5, "details": {"cached_tokens": 2}}


def test_a_raw_object_without_end_is_not_kept() -> None:
    assert usage.reduce({f"member{number}": number for number in range(2000)}) is None


def test_no_depth_of_nesting_fails() -> None:
    deep: dict[str, Any] = {"n": 1}
    for _ in range(5000):
        deep = {"d": deep}

    assert usage.reduce(deep) == '{"d":{"d":{"d":{}}}}'


@given(st.dictionaries(st.text(max_size=5), st.floats() | st.integers() | st.text(max_size=3), max_size=5))
def test_the_reduced_object_is_strict_json(raw: dict[str, Any]) -> None:
    reduced = usage.reduce(raw)

    assert reduced is not None
    json.loads(reduced, parse_constant=lambda name: pytest.fail(name))
