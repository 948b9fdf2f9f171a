"""One file of an agent, in any format: our values put into its text, and taken out again. Pure.

Every change is read back: the new text has to say exactly what the old one said and what was to change, or the change
is refused. So a spelling that an editor does not understand costs a refusal, never somebody's setting.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kt_manifest.launch.native import env_file, json_file, toml_file, tree, yaml_file
from kt_manifest.launch.native.tree import MISSING, Occupied, Path
from kt_manifest.launch.native.unreadable import Uneditable, Unreadable

Edit = tuple[Path, Any]
BOM = "\ufeff"

__all__ = [
    "BOM",
    "FORMATS",
    "Edit",
    "Occupied",
    "Path",
    "Uneditable",
    "Unreadable",
    "digest",
    "merge",
    "put_back",
]


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of one format are read, written anew and changed; a comment's sign, where there are comments."""

    read: Callable[[str], dict[str, Any]]
    write: Callable[[dict[str, Any]], str]
    put: Callable[[str, Path, Any], str]
    restore: Callable[[str, Path, str], str]
    remove: Callable[[str, Path], str]
    has_comments: bool = True


FORMATS: Mapping[str, Format] = {
    "toml": Format(toml_file.read, toml_file.write, toml_file.put, toml_file.restore, toml_file.remove),
    "json": Format(
        json_file.read,
        json_file.write,
        json_file.put,
        json_file.restore,
        json_file.remove,
        has_comments=False,
    ),
    "yaml": Format(yaml_file.read, yaml_file.write, yaml_file.put, yaml_file.restore, yaml_file.remove),
    "env": Format(env_file.read, env_file.write, env_file.put, env_file.restore, env_file.remove),
}


def merge(format_: str, text: str | None, edits: Sequence[Edit]) -> str:
    """Return the text of a file, None for one that is not there, with values put into it.

    Raises:
        Unreadable, Uneditable. Occupied: a value would take the place of a table, or lie below a value.
    """
    form = FORMATS[format_]
    if text is None:
        return form.write(tree.of(edits))
    mark, text = _split(text)
    wanted = form.read(text)
    for path, value in edits:
        if value == {} and isinstance(tree.find(wanted, path), dict):
            continue  # an empty table is there as soon as a table is
        wanted = tree.put(wanted, path, value)
        text = form.put(text, path, value)
    return mark + _checked(form, text, wanted)


def put_back(format_: str, text: str, original: str | None, paths: Iterable[Path]) -> str | None:
    """Return the text with these paths as they were in the original; None where no file was and nothing is left.

    Tables that were made for a path and are empty go with it.

    Raises:
        Unreadable, Uneditable.
    """
    form = FORMATS[format_]
    mark, text = _split(text)
    before = "" if original is None else _split(original)[1]
    old = {} if original is None else form.read(before)
    now = form.read(text)
    for path in paths:
        if tree.find(now, path) is MISSING:
            continue
        if (value := tree.find(old, path)) is not MISSING:
            text = form.restore(text, path, before)
            now = tree.put(tree.without(now, path), path, value)
            continue
        for gone in _with_emptied(now, old, path):
            text, now = form.remove(text, gone), tree.without(now, gone)
    _checked(form, text, now)
    if original is None and not now and not _says_more(form, text):
        return None
    return mark + text


def values(format_: str, text: str, paths: Iterable[Path]) -> dict[Path, Any]:
    """Return what stands at these paths, where something does. Raises Unreadable."""
    document = FORMATS[format_].read(_split(text)[1])
    found = {path: tree.find(document, path) for path in paths}
    return {path: value for path, value in found.items() if value is not MISSING}


def digest(value: Any) -> str:
    """Return what a value is recognised by, without telling it."""
    try:
        plain = json.dumps(value, sort_keys=True, default=repr)
    except (TypeError, ValueError):  # keys of several types, a value in itself: neither is ours
        plain = repr(type(value))
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def _with_emptied(now: dict[str, Any], old: dict[str, Any], path: Path) -> Iterator[Path]:
    """Give the path, then the tables above it that were not there before and have nothing else in them."""
    yield path
    for length in range(len(path) - 1, 0, -1):
        above = path[:length]
        if tree.find(old, above) is not MISSING or len(tree.find(now, above)) > 1:
            return
        yield above


def _split(text: str) -> tuple[str, str]:
    return (BOM, text[1:]) if text.startswith(BOM) else ("", text)


def _says_more(form: Format, text: str) -> bool:
    return form.has_comments and bool(text.strip())


def _checked(form: Format, text: str, wanted: dict[str, Any]) -> str:
    try:
        got = form.read(text)
    except Unreadable as error:
        raise Uneditable("a spelling that would not survive the change") from error
    if not tree.same(got, wanted):
        raise Uneditable("a spelling that would not survive the change")
    return text
