"""TOML files: `tomlkit` keeps every comment, space and spelling of what is not changed."""

import re
from collections.abc import Callable
from typing import Any

from kt_manifest import toml_text
from kt_manifest.launch.native.tree import Path
from kt_manifest.launch.native.unreadable import Uneditable, Unreadable

_ESCAPED = re.compile(r'[\x00-\x1f\x7f"\\]')  # TOML 1.0.0, "String"
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def read(text: str) -> dict[str, Any]:
    """Return the document. Raises Unreadable."""
    try:
        return toml_text.parse(text, limit_bytes=toml_text.LIMIT_FILE_BYTES)
    except toml_text.NotToml as error:
        raise Unreadable(error.reason, line=error.line) from error


def write(tree: dict[str, Any]) -> str:
    """Return a document of its own."""
    import tomlkit  # late: a start needs it, and reading a manifest or a setting does not

    return tomlkit.dumps(_spelled(tree))


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path; the tables above it are made where they are missing."""
    import tomlkit

    return _changed(text, lambda document: _set(document, path, tomlkit.item(_spelled(value))))


def restore(text: str, path: Path, original: str) -> str:
    """Return the text with what stands at `path` in `original`, as it is spelled there."""
    return _changed(text, lambda document: _set(document, path, _at(_parsed(original), path)))


def remove(text: str, path: Path) -> str:
    """Return the text without what stands at a path; the tables above it stay."""

    def take_away(document: Any) -> None:
        above = _at(document, path[:-1])
        if path[-1] in above:  # a table without a header of its own goes with the last that is in it
            del above[path[-1]]

    return _changed(text, take_away)


def _spelled(value: Any) -> Any:
    """Return a value whose texts are escaped already: tomlkit itself takes time in n squared for that (0.15, tried)."""
    from tomlkit.items import String, StringType, Trivia

    if isinstance(value, str):
        escaped = _ESCAPED.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", value)
        return String(StringType.SLB, value, escaped, Trivia())
    if isinstance(value, dict):
        return {name: _spelled(inner) for name, inner in value.items()}
    return [_spelled(inner) for inner in value] if isinstance(value, list) else value


def _changed(text: str, change: Callable[[Any], None]) -> str:
    try:
        document = _parsed(text)
        change(document)
        return str(document.as_string())
    except (Unreadable, Uneditable):
        raise
    except Exception as error:
        # tomlkit raises what Python raises where it meets a form that it does not know how to change.
        raise Uneditable(f"a form of TOML that is not edited ({type(error).__name__})") from error


def _parsed(text: str) -> Any:
    import tomlkit

    return tomlkit.parse(text)


def _at(document: Any, path: Path) -> Any:
    for name in path:
        document = document.get(name, {})
    return document


def _set(document: Any, path: Path, item: Any) -> None:
    import tomlkit

    *parents, last = path
    for depth, name in enumerate(parents):
        if name not in document:
            # A table whose only content is another table needs no header of its own.
            document[name] = tomlkit.table(is_super_table=depth < len(parents) - 1)
        document = document[name]
    document[last] = item
