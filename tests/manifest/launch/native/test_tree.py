import math

import pytest

from kt_manifest.launch.native import tree
from kt_manifest.launch.native.tree import MISSING, Occupied


def test_none_is_a_value_and_missing_is_none() -> None:
    assert tree.find({"a": None}, ("a",)) is None
    assert tree.find({"a": None}, ("b",)) is MISSING
    assert tree.find({"a": 1}, ("a", "b")) is MISSING
    assert "MISSING" == repr(MISSING)


def test_putting_changes_nothing_that_was_there() -> None:
    before = {"t": {"x": 1}}

    assert {"t": {"x": 1, "y": {"z": 2}}} == tree.put(before, ("t", "y", "z"), 2)
    assert {"t": {"x": 1}} == before


def test_two_values_of_one_path_do_not_make_a_tree() -> None:
    for edits in ([(("a",), 1), (("a",), 2)], [(("a",), 1), (("a", "b"), 2)], [(("a", "b"), 1), (("a",), 2)]):
        with pytest.raises(Occupied):
            tree.of(edits)


def test_what_is_not_there_is_taken_out_without_a_word() -> None:
    assert {"a": {}} == tree.without({"a": {"b": 1}}, ("a", "b"))
    assert {"a": 1} == tree.without({"a": 1}, ("x", "y"))


def test_leaves_are_values_and_empty_tables() -> None:
    assert [(("a", "b"), 1), (("c",), {}), (("d",), [{}])] == list(
        tree.leaves({"a": {"b": 1}, "c": {}, "d": [{}]})
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, True, False),
        (1, 1.0, False),
        (math.nan, math.nan, True),
        (0.0, -0.0, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, [2]], [1, [2]], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ("x", "x", True),
    ],
)
def test_sameness_tells_types_apart(one: object, other: object, same: bool) -> None:
    assert same is tree.same(one, other)
