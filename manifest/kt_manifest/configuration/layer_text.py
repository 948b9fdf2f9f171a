"""The text of one layer as settings: which TOML is a layer, and on which line what is not one stands. Pure.

A key is a path through tables (`metering.listener_auth` is `listener_auth` in `[metering]`); a quoted key with dots
means the same.
"""

from collections.abc import Iterator
from datetime import date, time
from pathlib import Path
from typing import Any

from kt_manifest import exit_codes, line_numbers, toml_text, words
from kt_manifest.configuration import layers
from kt_manifest.configuration.value_types import Value

Parts = tuple[str, ...]


class MalformedLayer(Exception):
    """The file is not TOML, or holds something that is no setting."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: Path, *, line: int, got: str) -> None:
        self.path = path
        self.line = line
        self.got = got
        self.wanted = "TOML with text, numbers, booleans and arrays of them"
        self.do = "correct the file by hand"
        super().__init__(
            f"malformed config layer {words.shown_path(path)}, line {line}: got {got}, wanted {self.wanted}; {self.do}"
        )


def leaves(path: Path, text: str) -> dict[str, tuple[Parts, Value]]:
    """Return every setting of a file's text by its dotted key, with its place, in the order of the file.

    Raises:
        MalformedLayer: it is not TOML, or not a layer; `path` is how the message calls it.
    """
    try:
        document = toml_text.parse(text)
    except toml_text.NotToml as error:
        raise MalformedLayer(path, line=error.line, got=error.reason) from error
    found: dict[str, tuple[Parts, Value]] = {}
    for parts, raw in walk(document):
        key = ".".join(parts)
        stored = value(raw)
        if stored is None or key in found:
            name = words.shown(key)
            got = f"a second {name}" if key in found else f"{name} with a value that is no setting"
            raise MalformedLayer(path, line=_line_of(text, parts), got=got)
        found[key] = (parts, stored)
    for key, (parts, _) in found.items():
        if above := next((name for name in layers.ancestors(key) if name in found), None):
            got = f"{words.shown(key)} below {words.shown(above)}, which has a value"
            raise MalformedLayer(path, line=_line_of(text, parts), got=got)
    return found


def read(path: Path, text: str) -> dict[str, Value]:
    """Return the same without the places."""
    return {key: stored for key, (_, stored) in leaves(path, text).items()}


def walk(document: dict[str, Any]) -> Iterator[tuple[Parts, Any]]:
    """Yield every leaf of a document with its path, in the order of the document."""
    # An explicit stack, since a dotted key may nest deeper than Python recurses.
    stack: list[tuple[Parts, Any]] = [((), document)]
    while stack:
        parts, raw = stack.pop()
        if isinstance(raw, dict):
            stack.extend(((*parts, name), below) for name, below in reversed(raw.items()))
        else:
            yield parts, raw


def value(raw: Any) -> Value | None:
    """Return what TOML gave as a setting, numbers and times as text; None for what is no setting."""
    if isinstance(raw, list):
        texts = [_scalar(item) for item in raw]
        return None if None in texts else [text for text in texts if text is not None]
    return _scalar(raw)


def _scalar(raw: Any) -> str | None:
    match raw:
        case str():
            return raw
        case bool():
            return str(raw).lower()
        case int() | float():
            return str(raw)
        case date() | time():
            return raw.isoformat()
    return None


def _line_of(text: str, parts: Parts) -> int:
    return line_numbers.lines(text).get(parts, 1)
