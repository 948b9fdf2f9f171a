import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest.launch import placeholders
from kt_manifest.launch.placeholders import SYNTAXES

NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,8}\Z")
WRITTEN = {
    "{env:VAR}": "{{env:{}}}",
    "${VAR}": "${{{}}}",
    "${VAR:-text}": "${{{}:-}}",
    "$VAR": "${}",
    "%VAR%": "%{}%",
}


@pytest.mark.parametrize(
    ("syntax", "text", "found"),
    [
        ("{env:VAR}", "a {env:B} c {env:D}{env:B}", ["B", "D"]),
        ("{env:VAR}", "{env:}{env}{ENV:A}{file:x}${A}$A%A%", []),
        ("{env:VAR}", "{env: A}{env:B C}", [" A", "B C"]),
        ("{env:VAR}", "{env:never closed", []),
        ("${VAR}", "${A}${_b1} ${1} ${} ${A:-x} $A {env:A}", ["A", "_b1"]),
        ("${VAR:-text}", "${A:-}${B-}${C:-text}${D}", ["A", "B"]),
        ("$VAR", "$A-$_b ${C} $1 $$ $D", ["A", "_b", "D"]),
        ("%VAR%", "%A% 100% %B %C%", ["A", "C"]),
    ],
)
def test_a_syntax_finds_its_own_and_nothing_else(syntax: str, text: str, found: list[str]) -> None:
    assert found == placeholders.names(text, [syntax])


def test_without_a_syntax_nothing_is_found() -> None:
    assert [] == placeholders.names("{env:A}${A}$A%A%", [])


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "\\u007benv:A}"}',
        '{"a": "{\\u0065nv:A\\u007D"}',
        '{"a": "\\u007Benv\\u003a\\u0041}"}',
        r'"\x7benv:A}"',
        r'"\U0000007benv:A}"',
        r"{\env:A}",
        json.dumps({"a": json.dumps({"b": '{"c": "\\u007benv:A}"}'})}),
    ],
)
def test_an_escape_hides_nothing(text: str) -> None:
    assert "A" in placeholders.names(text, ["{env:VAR}"])


def test_a_number_beyond_unicode_is_no_character_and_no_error() -> None:
    assert [] == placeholders.names(r"\Uffffffff \u \u12 \x \ ", SYNTAXES)
    assert ["A"] == placeholders.names("\\ud800{env:A}", ["{env:VAR}"])


def nested(text: str, shape: list[int]) -> str:
    """Put a text somewhere into JSON in JSON, as deep as the shape is long."""
    for kind in shape:
        value: Any = (
            text,
            [text],
            {"k": {"l": text}},
            {text: 1},
            [None, {"k": [1.5, text]}],
        )[kind % 5]
        text = json.dumps(value, ensure_ascii=bool(kind & 8))
        if kind & 16:
            text = text.replace("{", "\\u007b").replace("$", "\\u0024").replace("%", "\\u0025")
    return text


@given(
    st.sampled_from(SYNTAXES),
    NAMES,
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters='\\$%{}"'), max_size=5),
    st.lists(st.integers(0, 31), max_size=5),
)
def test_a_placeholder_is_found_however_deep_it_stands(
    syntax: str, name: str, around: str, shape: list[int]
) -> None:
    # Word characters behind a name would belong to it.
    text = f"{around} {WRITTEN[syntax].format(name)} {around}"

    assert name in placeholders.names(nested(text, shape), [syntax])


@given(st.text(max_size=60))
def test_any_text_can_be_looked_at(text: str) -> None:
    found = placeholders.names(text, SYNTAXES)

    assert len(found) == len(set(found))


def test_a_megabyte_is_looked_at_in_bounded_time() -> None:
    """Every reading is one pass: what grows with the square would take minutes here."""
    text = "\\" * 500_000 + "{env:" * 100_000

    assert [] == placeholders.names(text, SYNTAXES)
