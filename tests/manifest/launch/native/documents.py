"""Files of all four formats as agents and their operators write them, and what may be put into them (hypothesis)."""

import json
from typing import Any

from hypothesis import strategies as st

from kt_manifest.launch.native import document
from kt_manifest.launch.native.document import Edit

NAMES = st.sampled_from(
    ["a", "b", "c", "model", "llm", "n", "yes", "x-y", "X_1", "é", "a b", "1", "#", ":", '"']
)
ENV_NAMES = st.sampled_from(["A", "B", "MODEL", "X_1", "a.b", "_z"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "",
        "yes",
        "null",
        "1",
        "2024-01-01",
        "# no",
        "it's",
        'a"b',
        "$X",
        "a\nb",
        "\t",
        "- x",
        "\x85\u2028",
        "😀",
        "\x00",
    ]
)
ENV_TEXTS = TEXTS.map(lambda text: text.replace("\0", ""))
SCALARS = (
    TEXTS
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3)


def _trees(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.recursive(
        st.dictionaries(NAMES, values, max_size=3),
        lambda inner: st.dictionaries(NAMES, values | inner, max_size=3),
        max_leaves=6,
    )


TREES = _trees(VALUES)
TREES_WITH_NULL = _trees(VALUES | st.none())
SPACES = st.sampled_from(["", " ", "  "])
COMMENTS = st.sampled_from(["", "", " # kept", "  # a: b = 'c' \"d"])


@st.composite
def originals(draw: st.DrawFn, format_: str) -> str | None:
    """Return a file's text as somebody may have laid it out; None where there is no file."""
    if draw(st.integers(0, 9)) == 0:
        return None
    if format_ == "env":
        return "".join(draw(st.lists(_env_lines(), max_size=5)))
    tree = draw(TREES if format_ == "toml" else TREES_WITH_NULL)
    if format_ == "json":
        spaced = json.dumps(
            tree, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1, 4, "\t"]))
        )
        return draw(SPACES) + spaced + draw(st.sampled_from(["", "\n", "\n\n"]))
    text = document.FORMATS[format_].write(tree)
    if format_ == "yaml" and draw(st.booleans()):
        text = text.replace(": null\n", ":\n")
    return _laid_out(draw, format_, text)


def edits(format_: str) -> st.SearchStrategy[list[Edit]]:
    """Return a few values, no two in one place."""
    if format_ == "env":
        return st.dictionaries(ENV_NAMES.map(lambda name: (name,)), ENV_TEXTS, max_size=3).map(
            lambda found: list(found.items())
        )
    paths = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
    return st.dictionaries(paths, VALUES, max_size=4).map(_apart)


def _apart(found: dict[tuple[str, ...], Any]) -> list[Edit]:
    return [
        (path, value)
        for path, value in found.items()
        if not any(path != other and path[: len(other)] == other for other in found)
    ]


@st.composite
def _env_lines(draw: st.DrawFn) -> str:
    name = draw(ENV_NAMES)
    value = draw(
        st.sampled_from(["", "1", "'a b'", '"x\\"y"', '"two\nlines"', "plain text # c", "'it'  # c"])
    )
    line = draw(
        st.sampled_from(["", "# comment", f"{name}={value}", f"export {name} = {value}", f"  {name}={value}"])
    )
    return line + draw(st.sampled_from(["\n", "\r\n", "\n\n"]))


def _laid_out(draw: st.DrawFn, format_: str, text: str) -> str:
    """Add comments, blank lines and other line ends where they change nothing; what says something else is not used."""
    lines = [line + draw(COMMENTS) if line else line for line in text.split("\n")]
    for _ in range(draw(st.integers(0, 3))):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(["", "# between", "    # deep"])))
    spelled = draw(st.sampled_from(["\n", "\r\n"])).join(lines)
    read = document.FORMATS[format_].read
    try:
        return spelled if read(spelled) == read(text) else text
    except document.Unreadable:
        return text
