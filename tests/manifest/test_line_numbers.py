import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.manifests.mutations import Mutations

from kt_manifest import line_numbers, toml_text

CORPUS = sorted((Path(__file__).resolve().parents[2] / "manifests").glob("*/*.toml"))


def paths(value: Any, at: line_numbers.Path = ()) -> set[line_numbers.Path]:
    found = {at} if at else set()
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found.union(*(paths(below, (*at, key)) for key, below in pairs))


def test_each_key_table_and_element_has_its_line() -> None:
    text = (
        'a = 1\n# [not]\n\n[b]\nc."d e" = [\n  1, # one\n  { f = """\n[x]\n""", g = \'\' },\n]\n'
        "[[h]]\n[[h]]\ni = 1979-05-27 07:32:00\n[h.j]\n"
    )

    found = line_numbers.lines(text)

    assert {
        ("a",): 1,
        ("b",): 4,
        ("b", "c"): 5,
        ("b", "c", "d e"): 5,
        ("b", "c", "d e", 0): 6,
        ("b", "c", "d e", 1): 7,
        ("b", "c", "d e", 1, "f"): 7,
        ("b", "c", "d e", 1, "g"): 9,
        ("h",): 11,
        ("h", 0): 11,
        ("h", 1): 12,
        ("h", 1, "i"): 13,
        ("h", 1, "j"): 14,
    } == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only",
        "a=1",
        "a = 1\r\n[b]\r\n",
        '"" = 1\n',
        '"\\u0041\\"" = 1\n',
        "' \"' = 1\n",
        "a.b.c = 1\na.d = {}\n",
        "x = [[], [[]], {}]\n",
        'x = """a\\"""b"""\ny = 2\n',
        'x = """""""\ny = 2\n',
        "x = ''''' ''''\ny = 2\n",
        "[ a . 'b' ]\nc = 1 # d = 2\n",
        "x = { a . b = 1 , c = '}' }\ny = [ ']', \"#\" ]\n",
    ],
)
def test_the_keys_are_those_of_the_document(text: str) -> None:
    assert paths(tomllib.loads(text)) == set(line_numbers.lines(text))


def test_it_is_so_for_whatever_is_toml() -> None:
    mutations = Mutations(1)
    inputs = [path.read_bytes() for path in CORPUS] + [mutations.input(number) for number in range(2000)]
    judged = 0
    for data in inputs:
        try:
            text = toml_text.decode(data)
            document = toml_text.parse(text)
        except toml_text.NotToml:
            continue
        judged += 1

        found = line_numbers.lines(text)

        assert paths(document) == set(found), data
        rows = text.split("\n")
        for path, line in found.items():
            # A bare key stands in the row that is named, as far as it is written as it is read.
            key = path[-1]
            assert not isinstance(key, str) or key in rows[line - 1] or "\\" in rows[line - 1], (path, line)
    assert judged > 1000


def test_what_is_nested_too_deeply_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {} == line_numbers.lines("x = " + "[" * 5000 + "]" * 5000)
