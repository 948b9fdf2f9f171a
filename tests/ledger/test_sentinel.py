import json
import sys
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_ledger.sentinel import Malformed, Usage, read_line
from kt_ledger.values import U64_MAX, Counts

GOOD = '{"sequence": 3, "input_tokens": 128, "output_tokens": 512}'
USAGE = Usage(3, Counts(input=128, output=512))


def line(payload: str) -> bytes:
    return b"KTESIO_USAGE " + payload.encode()


def changed(**fields: object) -> bytes:
    return line(json.dumps({"sequence": 3, "input_tokens": 128, "output_tokens": 512, **fields}))


def raw(name: str, text: str) -> bytes:
    """Return a good line in which one field's value is spelt `text`."""
    fields = {"sequence": "3", "input_tokens": "128", "output_tokens": "512", name: text}
    return line("{" + ",".join(f'"{key}":{value}' for key, value in fields.items()) + "}")


@pytest.mark.parametrize(
    "bare",
    [
        line(GOOD),
        line(GOOD) + b"\n",
        line(GOOD) + b"\r\n",
        b" \t" + line(GOOD) + b" \t\r",
        b"\r" + line(GOOD),
        b"KTESIO_USAGE   \t" + GOOD.encode(),
        b"50 %\r100 %\r" + line(GOOD),
        line(GOOD.replace("input_tokens", "input\\u005ftokens")),
    ],
)
def test_whitespace_and_progress_around_a_report_are_tolerated(bare: bytes) -> None:
    assert USAGE == read_line(bare)


def test_optional_fields_become_disjoint_units() -> None:
    found = read_line(changed(cached_tokens=28, reasoning_tokens=500, model="m-1", request_id="r"))

    assert (
        Usage(3, Counts(input=100, cache_read=28, output=12, reasoning=500), model="m-1", request_id="r")
        == found
    )


def test_zero_is_an_exact_zero() -> None:
    found = read_line(changed(sequence=0, input_tokens=0, output_tokens=0, cached_tokens=0))

    assert Usage(0, Counts(input=0, cache_read=0, output=0)) == found


def test_the_largest_count_is_a_count() -> None:
    found = read_line(changed(sequence=U64_MAX, input_tokens=U64_MAX, output_tokens=U64_MAX))

    assert Usage(U64_MAX, Counts(input=U64_MAX, output=U64_MAX)) == found


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"hello",
        b"KTESIO_USAGE",
        b"KTESIO_USAGE\n",
        b"KTESIO_USAGE\t" + GOOD.encode(),
        b"KTESIO_USAGE" + GOOD.encode(),
        b"ktesio_usage " + GOOD.encode(),
        b"log: " + line(GOOD),
        b'"' + line(GOOD),
        b"\xef\xbb\xbf" + line(GOOD),
        b"KTESIO_USAGE_TOTAL 5",
    ],
)
def test_a_line_without_the_literal_prefix_is_the_agents_own(text: bytes) -> None:
    assert read_line(text) is None


@pytest.mark.parametrize(
    "name", ["sequence", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"]
)
@pytest.mark.parametrize(
    "text",
    [
        "true",
        "false",
        "null",
        '"1"',
        "1.0",
        "1e2",
        "1E0",
        "0.5",
        "-1",
        "-0",
        "-0.0",
        str(U64_MAX + 1),
        "9" * 5000,
        "[1]",
        '{"a":1}',
        "1e99999",
    ],
)
def test_a_number_that_is_no_natural_number_makes_the_line_malformed(name: str, text: str) -> None:
    assert Malformed(f"{name} is not an integer from 0 to 2^64-1") == read_line(raw(name, text))


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", "01", "+1", "0x1", "1_000", "١", ".5", "1."]
)
def test_a_number_that_json_does_not_know_is_not_json(text: str) -> None:
    assert Malformed("not JSON") == read_line(raw("input_tokens", text))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (line(""), "not JSON"),
        (line("not json"), "not JSON"),
        (line(GOOD + " {}"), "not JSON"),
        (line(GOOD[:-1]), "not JSON"),
        (line(GOOD[:-1] + ",}"), "not JSON"),
        (line(GOOD.replace('"', "'")), "not JSON"),
        (line("[1]"), "not a JSON object"),
        (line("3"), "not a JSON object"),
        (line("null"), "not a JSON object"),
        (line("{}"), "sequence is missing"),
        (line('{"sequence":1,"input_tokens":1}'), "output_tokens is missing"),
        (line(GOOD[:-1] + ', "sequence": 3}'), "a field is given twice"),
        (line(GOOD[:-1] + ', "sequenc\\u0065": 3}'), "a field is given twice"),
        (changed(total_tokens=640), "unknown field total_tokens"),
        (changed(**{"sk-secret key": 1}), "unknown field"),
        (changed(**{"x" * 41: 1}), "unknown field"),
        (changed(cached_tokens=129), "cached_tokens is more than input_tokens"),
        (changed(reasoning_tokens=513), "reasoning_tokens is more than output_tokens"),
        (changed(model=None), "model is not a text of 1 to 256 printable characters"),
        (changed(model=""), "model is not a text of 1 to 256 printable characters"),
        (changed(model="\x1b[2J"), "model is not a text of 1 to 256 printable characters"),
        (changed(model="\ud800"), "model is not a text of 1 to 256 printable characters"),
        (changed(request_id="r" * 257), "request_id is not a text of 1 to 256 printable characters"),
        (changed(request_id=7), "request_id is not a text of 1 to 256 printable characters"),
        (line(GOOD).replace(b"512", b'51"\xff'), "not UTF-8"),
        (line(GOOD) + b"\x00", "not JSON"),
        (line(GOOD) + b"\r" + line(GOOD), "not JSON"),
    ],
)
def test_a_bad_report_is_malformed_and_says_why(bad: bytes, reason: str) -> None:
    assert Malformed(reason) == read_line(bad)


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"sequence":['])
def test_deep_nesting_is_malformed(opening: str) -> None:
    assert Malformed("not JSON") == read_line(line(opening * 200_000))


def test_a_cut_line_is_malformed_only_where_it_began_as_a_report() -> None:
    assert Malformed("the line is too long") == read_line(line(GOOD), truncated=True)
    assert read_line(b"x" * 100 + line(GOOD), truncated=True) is None


def test_very_many_digits_cost_no_more_than_reading_them() -> None:
    huge = raw("input_tokens", "9" * 1_000_000)

    began = time.process_time()
    found = read_line(huge)

    assert isinstance(found, Malformed)
    assert time.process_time() - began < 1.0  # int() of a million digits takes minutes


def test_ten_megabytes_of_something_else_are_not_copied() -> None:
    text = b"x" * 10_000_000
    tracemalloc.start()

    found = read_line(text)

    assert found is None
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_make_the_reader_raise(text: bytes, truncated: bool) -> None:
    read_line(text, truncated=truncated)
    found = read_line(b"KTESIO_USAGE " + text, truncated=truncated)

    assert isinstance(found, Usage | Malformed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["sequence", "input_tokens", "output_tokens", "cached_tokens", "surprise"]))
def test_only_naturals_in_range_are_ever_counted(value: object, name: str) -> None:
    found = read_line(changed(**{name: value}))

    natural = type(value) is int and 0 <= value <= U64_MAX
    fits = name != "cached_tokens" or (natural and int(str(value)) <= 128)
    assert (natural and fits and name != "surprise") == isinstance(found, Usage)


@given(st.text(alphabet="secretSECRET0123456789", min_size=6, max_size=30))
def test_a_reason_quotes_nothing_of_a_value(secret: str) -> None:
    for bad in (
        changed(model={"a": secret}),
        changed(input_tokens=secret),
        line(f"{GOOD} {secret}"),
        line(json.dumps([secret])),
    ):
        found = read_line(bad)

        assert isinstance(found, Malformed)
        assert secret not in found.reason


def test_a_line_that_is_no_report_is_told_by_one_search() -> None:
    """Counted in calls rather than in time: rejecting calls nothing but the search itself."""
    calls = []
    text = b"an ordinary line of output, as agents print them all day long"

    sys.setprofile(lambda _frame, kind, _argument: calls.append(kind))
    read_line(text)
    sys.setprofile(None)

    assert ["call", "return", "c_call"] == calls
