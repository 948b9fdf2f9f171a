import pytest

from kt_manifest.launch.native import json_file
from kt_manifest.launch.native.unreadable import Unreadable

SPREAD = '{\n    "a": 1.10,\n    "t": {"x": "\\u00e9"},\n    "l": [1, 2]\n}\n'


@pytest.mark.parametrize(
    ("path", "value", "changed"),
    [
        (("a",), 2, ("1.10", "2")),
        (("t", "x"), "v", ('"\\u00e9"', '"v"')),
        (("t", "y"), True, ('"\\u00e9"}', '"\\u00e9", "y": true}')),
        (("new",), None, ("[1, 2]\n", '[1, 2],\n    "new": null\n')),
        (("n", "m", "o"), [1], ("[1, 2]\n", '[1, 2],\n    "n": {"m": {"o": [1]}}\n')),
    ],
)
def test_only_the_place_itself_changes(
    path: tuple[str, ...], value: object, changed: tuple[str, str]
) -> None:
    assert SPREAD.replace(*changed) == json_file.put(SPREAD, path, value)


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ('{"a": 1, "b": 2}', ("a",), '{"b": 2}'),
        ('{"a": 1, "b": 2}', ("b",), '{"a": 1}'),
        ('{ "a": 1 }', ("a",), "{}"),
        ('{"a": {"b": "}"}, "c": 3}', ("a", "b"), '{"a": {}, "c": 3}'),
    ],
)
def test_a_member_goes_with_one_comma(text: str, path: tuple[str, ...], left: str) -> None:
    assert left == json_file.remove(text, path)


def test_what_was_there_comes_back_in_its_own_spelling() -> None:
    assert '{"a": 1.10, "z": 0}' == json_file.restore('{"a": "ours", "z": 0}', ("a",), '{ "a" : 1.10 }')


def test_line_ends_stay_those_of_the_file() -> None:
    assert '{\r\n  "a": 1,\r\n  "b": 2\r\n}' == json_file.put('{\r\n  "a": 1\r\n}', ("b",), 2)


def test_an_empty_object_takes_a_member() -> None:
    assert ' {"a": 1}\n' == json_file.put(" { }\n", ("a",), 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[1]", "something else than an object"),
        ('{\n// no\n"a": 1}', "Expecting property name"),
        ('{"a": 1, "a": 2}', "a name that stands twice in one object"),
        ('{"a": NaN}', "NaN, which is no JSON"),
        ('{"a": ' + "[" * 200_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "Exceeds the limit"),
        ('{"a": 1,}', "Illegal trailing comma|Expecting property name"),
    ],
)
def test_what_is_no_json_object_is_named(text: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        json_file.read(text)


def test_the_line_is_told() -> None:
    with pytest.raises(Unreadable) as caught:
        json_file.read('{\n"a": 1\n"b": 2}')

    assert 3 == caught.value.line
