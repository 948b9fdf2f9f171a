import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kt_manifest.line_pattern import LinePattern
from kt_manifest.pattern_compiler import PatternRefused

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "A",
        "0",
        " ",
        "é",
        ".",
        r"\d",
        r"\W",
        r"\s",
        r"\.",
        r"\x61",
        "[ab]",
        "[^a]",
        "[a-c0]",
        "[]a]",
        r"[\d-]",
    ]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}", "*?"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)
LINES = st.text(alphabet="abcAB01 .-]éß\t", max_size=12)
ENDS = st.sampled_from(["{}", "^{}", "{}$", "^{}$", "(?i){}", "^|{}", "{}|b$"])


@given(PATTERNS, ENDS, LINES)
@example("a", "{}", "")
@example("(a*)*", "^{}$", "aab")
def test_what_is_accepted_means_what_it_means_in_re(pattern: str, ends: str, line: str) -> None:
    text = ends.format(pattern)
    try:
        compiled = LinePattern(text)
    except PatternRefused as refused:
        assert "states" in str(refused)
        return

    assert bool(re.search(text, line)) is compiled.found_in(line)


@given(st.text(max_size=40))
def test_any_text_is_a_pattern_or_refused_with_a_reason(text: str) -> None:
    try:
        LinePattern(text).found_in("some line 0.0.0.0:8080")
    except PatternRefused as refused:
        assert str(refused)


@pytest.mark.parametrize(
    "text",
    [
        "(", ")", "a)", "[", "[a", "[b-a]", "*", "a**", "a{3}{2}", "^*", "(?=a)", "(?<a>b)", "(?P<n>a)", r"(a)\1",
        r"\b", r"\q", "\\", r"\x6", r"[\d-a", "a{2,1}", "a{101}", "{2}",
        r"[\d-x]", "a|{0,}", "(" * 60 + ")" * 60, "a" * 501,
        "(((){100}){100}){100}", "(a{100}){100}", "a(?i)b",
    ],
)  # fmt: skip
def test_what_has_no_bound_or_no_meaning_is_refused(text: str) -> None:
    with pytest.raises(PatternRefused):
        LinePattern(text)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "^(a|a)*$", "(a|aa)+$", "(.*)*x", "(a*)*b", ".*.*.*.*x", "(a?){50}a{50}$", "(x+x+)+y"],
)
def test_patterns_that_hang_re_are_quick(pattern: str) -> None:
    compiled = LinePattern(pattern)
    line = "a" * 20_000 + "!"
    began_s = time.process_time()

    found = compiled.found_in(line)

    assert not found
    assert time.process_time() - began_s < 5


def test_what_is_remembered_is_bounded() -> None:
    compiled = LinePattern("(?:a|b)*a(?:a|b){20}c")
    bits = "".join("ab"[(number * number >> 3) & 1] for number in range(60_000))

    compiled.found_in(bits)

    assert sum(map(len, compiled._steps.values())) <= 20_000


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("Listening on .*:[0-9]+", "INFO  Listening on 0.0.0.0:8080"),
        ("(?i)ready", "Server READY."),
        ("^up$", "up"),
        ("a{", "a{"),
        ("{}", "{}"),
        (r"\[ok\]", "[ok]"),
    ],
)
def test_lines_that_agents_print_are_found(pattern: str, line: str) -> None:
    assert LinePattern(pattern).found_in(line)
