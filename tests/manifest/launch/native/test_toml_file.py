import tomllib

import pytest
import tomlkit
from hypothesis import given, settings
from tests.manifest.launch.native import documents

from kt_manifest.launch.native import toml_file
from kt_manifest.launch.native.unreadable import Uneditable, Unreadable


def test_keys_are_nested_and_values_are_text() -> None:
    text = toml_file.write({"llm": {"model": "5", "args": ["x", "y"], "sub": {"key": "true"}}, "top": 'a"\n'})

    assert text == ('top = "a\\"\\n"\n\n[llm]\nmodel = "5"\nargs = ["x", "y"]\n\n[llm.sub]\nkey = "true"\n')


@settings(max_examples=100, deadline=None)
@given(documents.TREES)
def test_whatever_the_keys_and_values_it_reads_back_the_same(tree: dict[str, object]) -> None:
    assert tree == tomllib.loads(toml_file.write(tree))


@settings(max_examples=100, deadline=None)
@given(documents.TEXTS)
def test_texts_are_spelled_as_the_library_itself_spells_them(text: str) -> None:
    """The contract's own files have always been its; only its speed is not taken."""
    assert tomlkit.dumps({"a": {"b": text}}) == toml_file.write({"a": {"b": text}})


def test_comments_spaces_and_spellings_stay() -> None:
    text = "# top\na   = 0x10 # hex\n\n[t] # table\n'q' = '''x'''\n"

    assert text.replace("0x10", "1") == toml_file.put(text, ("a",), 1)
    assert text + 'n = "v"\n' == toml_file.put(text, ("t", "n"), "v")


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\na = 2\n", 2), ("a = [\n", 1), ("x\n", 1), ("a = " + "[" * 5000, 1), ("a = " + "9" * 5000, 1)],
)
def test_what_is_no_toml_is_named_by_its_line(text: str, line: int) -> None:
    with pytest.raises(Unreadable) as caught:
        toml_file.read(text)

    assert line == caught.value.line


def test_a_place_that_cannot_be_edited_is_a_named_refusal() -> None:
    with pytest.raises(Uneditable, match="a form of TOML that is not edited"):
        toml_file.put("a = [1]\n", ("a", "b"), 1)
