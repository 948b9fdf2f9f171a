import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from tests.manifest.launch.native import documents

from kt_manifest.launch.native import document, yaml_file
from kt_manifest.launch.native.unreadable import Uneditable, Unreadable

TEXT = """\
# head
model:
    default: a   # why

    list:
    - 1
    - 2   # two
text: |
  kept
flow: {x: 1, y: [2]}
none:
last: "q"
# foot
"""


@pytest.mark.parametrize(
    ("path", "value", "changed"),
    [
        (("model", "default"), "b", ("default: a", 'default: "b"')),
        (("model", "new"), 1, ("- 2   # two\n", "- 2   # two\n    new: 1\n")),
        (("model", "list"), [3], ("list:\n    - 1\n    - 2   # two", "list: [3]   # two")),
        (("text",), "t", ("|\n  kept", '"t"')),
        (("flow", "x"), True, ("x: 1", "x: true")),
        (("flow", "z"), None, ("[2]}", "[2], z: null}")),
        (("none",), "n", ("none:", 'none: "n"')),
        (("top", "a", "b"), 1, ('"q"\n', '"q"\ntop: {a: {b: 1}}\n')),
    ],
)
def test_only_the_place_itself_changes(
    path: tuple[str, ...], value: object, changed: tuple[str, str]
) -> None:
    assert TEXT.replace(*changed) == document.merge("yaml", TEXT, [(path, value)])


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ("a: 1\nb: 2\n", ("a",), "b: 2\n"),
        ("a: 1 # x\nb: 2", ("b",), "a: 1 # x\n"),
        ("t:\n  a: 1\nb: 2\n", ("t", "a"), "t: {}\nb: 2\n"),
        ("t: {a: 1, b: 2}\n", ("t", "a"), "t: {b: 2}\n"),
        ("t: {a: 1, b: 2}\n", ("t", "b"), "t: {a: 1}\n"),
        ("t: {a: 1}\n", ("t", "a"), "t: {}\n"),
        ("# c\na: 1\n", ("a",), "# c\n"),
    ],
)
def test_a_pair_goes_with_its_line(text: str, path: tuple[str, ...], left: str) -> None:
    assert left == yaml_file.remove(text, path)


@pytest.mark.parametrize("text", ["", "# only\n", "---\n"])
def test_an_empty_document_takes_a_first_pair(text: str) -> None:
    assert {"a": {"b": "x"}} == yaml_file.read(document.merge("yaml", text, [(("a", "b"), "x")]))


@settings(max_examples=100, deadline=None)
@given(documents.TREES)
def test_whatever_the_keys_and_values_it_reads_back_the_same(tree: dict[str, object]) -> None:
    assert tree == yaml_file.read(yaml_file.write(tree))


def test_texts_are_texts_for_readers_of_either_version() -> None:
    """YAML 1.1 takes bare `no` and `1_000` for a boolean and a number; in quotes nobody does."""
    tree = {"no": "yes", "n": "1_000", "t": "12:30", "f": 1.5, "e": {}}

    assert '"no": "yes"\n"n": "1_000"\nt: "12:30"\nf: 1.5\ne: {}\n' == yaml_file.write(tree)


def test_what_an_alias_shares_is_not_changed_behind_its_back() -> None:
    text = "a: &x {k: 1}\nb: *x\n"

    with pytest.raises(Uneditable):
        document.merge("yaml", text, [(("b", "k"), 2)])


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\n b: 2\n", 2, "mapping values are not allowed here"),
        ("a: 1\na: 2\n", 2, "a key that stands twice"),
        ("- 1\n", 1, "something else than a mapping"),
        ("a: 1\n---\nb: 2\n", 2, "no plain YAML"),
        ("a: !!python/object:os.system x\n", 1, "no plain YAML"),
        ("a: \x01\n", 1, "a character that YAML does not allow"),
        ("a: " + "[" * 20_000, 1, "nested too deeply"),
        ("a: &a [*a]\n", 1, "an alias of what it stands in"),
        ("a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
            f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n" for before, name in pairwise("abcdefg")
        ), 6, "more than"),
    ],
)  # fmt: skip
def test_what_is_no_plain_yaml_is_named_by_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason) as caught:
        yaml_file.read(text)

    assert line == caught.value.line


def test_no_reason_quotes_what_stands_there() -> None:
    for text in (
        "key: sk-secret\nkey: sk-other\n",
        "a: !sk-secret 1\n",
        "a: *sk-secret\n",
    ):
        with pytest.raises(Unreadable) as caught:
            yaml_file.read(text)
        assert "sk-" not in str(caught.value)


def test_json_is_yaml() -> None:
    text = json.dumps({"a": {"b": 1}}, indent=2)

    assert {"a": {"b": "v"}} == yaml_file.read(document.merge("yaml", text, [(("a", "b"), "v")]))
