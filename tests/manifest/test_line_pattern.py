import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kt_manifest.line_pattern import LONGEST_PATTERN, GroupPattern, LinePattern, PatternRefused

ATOMS = st.sampled_from(["a", "b", "A", "0", " ", "é", ".", r"\.", r"\x61", "[ab]", "[^a]", "[a-c0]", "[]a]"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"])).map(
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

    assert bool(re.search(text, line)) is LinePattern(text).found_in(line)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [("(a+)+$", "a" * 20_000 + "b"), ("(a|aa)+$", "a" * 20_000 + "b"), (".*.*.*.*x", "y" * 64_000)],
)
def test_a_pattern_that_hangs_re_takes_no_time_here(pattern: str, line: str) -> None:
    begun_s = time.process_time()

    assert not LinePattern(pattern).found_in(line)
    assert time.process_time() - begun_s < 2


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        "(?=a)",
        "(?<!a)b",
        "(",
        "[a",
        "*",
        "a{2,1}",
        "(a{1000}){1000}",
        "a" * (LONGEST_PATTERN + 1),
        "\ud800",
    ],
)
def test_what_has_no_bound_or_is_no_pattern_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(PatternRefused) as refused:
        LinePattern(pattern)

    assert str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "text", "taken"),
    [
        (r"v([0-9.]+)", "agent v1.2 v3", "1.2"),
        (r"(?m)^agent (\S+)$", "x\nagent 2-rc.1\n", "2-rc.1"),
        (r"(?:a|b)(c)?", "a", None),
        (r"(x*)", "y", None),
        (r"(z)", "y", None),
        (r"(?P<release>\d+)", "7", "7"),
    ],
)
def test_a_group_is_taken_from_the_first_place_that_fits(pattern: str, text: str, taken: str | None) -> None:
    assert taken == GroupPattern(pattern).taken_from(text)


@pytest.mark.parametrize(
    "pattern", ["", "a", "(?:a)", "(a)(b)", "((a))", "(", r"(a)\1", "(" + "a" * LONGEST_PATTERN]
)
def test_a_pattern_without_exactly_one_group_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused):
        GroupPattern(pattern)
