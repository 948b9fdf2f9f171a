from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest.configuration import layer_text

FILE = Path("/state/config.toml")


def test_dotted_quoted_and_nested_keys_mean_the_same() -> None:
    nested = layer_text.read(FILE, '[a.b]\nc = 1\n[d]\n"e.f" = [true, 1.5]\n')
    dotted = layer_text.read(FILE, '"a.b.c" = "1"\nd.e.f = ["true", "1.5"]\n')

    assert {"a.b.c": "1", "d.e.f": ["true", "1.5"]} == nested == dotted


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("model =\n", 1, "Invalid value"),
        ('a = 1\n"a.b" = 2\n', 2, '"a.b" below "a", which has a value'),
        ('"a.b" = 1\n[a]\nb = 2\n', 3, 'a second "a.b"'),
        ("ok = 1\nmodel = [[1]]\n", 2, '"model" with a value that is no setting'),
        ('"x\\u001by" = [[1]]\n', 1, "\\x1by"),
        ("model = [[1]]\n# model = 1\n[other]\nmodel = 'x'\n", 1, '"model" with'),
        ('[a]\nlist = [[1]]\n[b]\ntext = """\nlist = 1\n"""\n', 2, '"a.list" with'),
        ("[a]\nx = { y = 1, z = [\n[1]] }\n[b]\nz = 1\n", 2, '"a.x.z" with'),
    ],
)
def test_what_is_no_layer_is_named_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(layer_text.MalformedLayer) as refused:
        layer_text.read(FILE, text)

    assert line == refused.value.line
    assert says in str(refused.value)
    assert str(refused.value).isprintable()


@given(st.text(max_size=200))
def test_any_text_is_a_layer_or_a_malformed_one(text: str) -> None:
    try:
        layer_text.read(FILE, text)
    except layer_text.MalformedLayer as error:
        assert 1 <= error.line <= text.count("\n") + 1
