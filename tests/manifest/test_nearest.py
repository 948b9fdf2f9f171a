import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest import nearest


@pytest.mark.parametrize(
    ("left", "right", "edits"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("kitten", "sitting", 3),
        ("model", "modle", 2),
        ("a", "b", 1),
    ],
)
def test_the_distance_counts_single_edits(left: str, right: str, edits: int) -> None:
    assert edits == nearest.distance(left, right) == nearest.distance(right, left)


@given(st.text("abc", max_size=6), st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_the_distance_is_a_metric(one: str, two: str, three: str) -> None:
    assert (nearest.distance(one, two) == 0) == (one == two)
    assert nearest.distance(one, three) <= nearest.distance(one, two) + nearest.distance(two, three)


def test_the_nearest_is_within_three_and_ties_go_to_the_alphabet() -> None:
    assert nearest.nearest("modle", ["memory", "model"]) == "model"
    assert nearest.nearest("ax", ["bx", "cx", "aa"]) == "aa"
    assert nearest.nearest("abcd", ["wxyz", "abwxyzcd"]) is None
    assert nearest.nearest("abc", ["xyz"]) == "xyz"
    assert nearest.nearest("abcd", []) is None


def test_a_suggestion_is_a_sentence_either_way() -> None:
    assert nearest.suggestion("modle", ["model"]) == "did you mean model?"
    assert nearest.suggestion("zzzzzzzz", ["model"]) == "no close match"


def test_a_megabyte_of_nonsense_costs_nothing() -> None:
    begun = time.process_time()

    assert nearest.nearest("x" * 1_000_000, ["model"] * 100) is None

    assert time.process_time() - begun < 1
