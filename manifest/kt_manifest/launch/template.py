"""A text of the adapter with `${key}` in it, filled in for one Run. Pure.

A template in a format with structure is read first and filled afterwards, leaf by leaf, so that no value can close a
quote or add a member. A leaf, a member or its name that is exactly one reference takes the value with its type, and is
left out where the key has none; where a reference is a part of a text, the key must have a value.
"""

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from kt_manifest.launch import references, typed_value
from kt_manifest.launch.native import env_file, json_file, toml_file, yaml_file
from kt_manifest.launch.native.tree import MISSING
from kt_manifest.launch.native.unreadable import Unreadable
from kt_manifest.launch.references import Malformed, Reference

TEXT = "text"
_READ: Mapping[str, Callable[[str], Any]] = {
    "json": json_file.read,
    "toml": toml_file.read,
    "yaml": yaml_file.read,
    "env": env_file.read,
    TEXT: lambda text: text,
}
_DATES = (datetime.date, datetime.time)


class TemplateInvalid(Exception):
    """The template cannot be used; the argument says why."""


class Unset(Exception):
    """A key that is a part of a text has no value."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


class TwoOfOneName(Exception):
    """Two members of a table have one name once their references are filled in."""


class Lookup(Protocol):
    """What a key stands for."""

    def text(self, key: str) -> str | None:
        """Return it as text, None where it has no value."""
        ...

    def typed(self, key: str) -> Any:
        """Return it with its type, MISSING where it has no value."""
        ...


def read(format_: str, template: str) -> Any:
    """Return what a template says, references unfilled.

    Raises:
        TemplateInvalid: it is not of its format, or refers to what can never be there.
    """
    try:
        tree = _READ[format_](template)
    except Unreadable as error:
        raise TemplateInvalid(f"line {error.line}: {error.reason}") from error
    for text in _texts(tree):
        try:
            found = references.keys(text)
        except Malformed as error:
            raise TemplateInvalid(f"{error}; $${{ writes one itself") from error
        for key in found:
            if fault := references.fault_in_key(key):
                raise TemplateInvalid(fault)
    if fault := _fault_in_values(tree, format_):
        raise TemplateInvalid(fault)
    return tree


def keys(tree: Any) -> list[str]:
    """Return the keys that a template refers to, each once, in order."""
    return list(dict.fromkeys(key for text in _texts(tree) for key in references.keys(text)))


def fill(format_: str, tree: Any, lookup: Lookup) -> Any:
    """Return the template with every reference replaced; MISSING where it is one reference, and that has no value.

    Raises:
        Unset, TwoOfOneName.
    """
    return _fill(tree, lookup, typed=format_ not in ("env", TEXT))


def _fill(tree: Any, lookup: Lookup, *, typed: bool) -> Any:
    if isinstance(tree, dict):
        return _fill_table(tree, lookup, typed=typed)
    if isinstance(tree, list):
        filled = [_fill(item, lookup, typed=typed) for item in tree]
        return [item for item in filled if item is not MISSING]
    return _fill_text(tree, lookup, typed=typed) if isinstance(tree, str) else tree


def _fill_table(table: dict[str, Any], lookup: Lookup, *, typed: bool) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for name, value in table.items():
        new_name = _fill_text(name, lookup, typed=False)
        if new_name is MISSING:
            continue
        new_value = _fill(value, lookup, typed=typed)
        if new_value is MISSING:
            continue
        if new_name in filled:
            raise TwoOfOneName(name)
        filled[new_name] = new_value
    return filled


def _fill_text(text: str, lookup: Lookup, *, typed: bool) -> Any:
    found = references.parts(text)
    match found:
        case [Reference(key)]:
            value = lookup.typed(key) if typed else lookup.text(key)
            return MISSING if value is None and not typed else value
    return "".join(part if isinstance(part, str) else _needed(part.key, lookup) for part in found)


def _needed(key: str, lookup: Lookup) -> str:
    text = lookup.text(key)
    if text is None:
        raise Unset(key)
    return text


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield name if isinstance(name, str) else ""
            yield from _texts(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from _texts(item)


def _fault_in_values(tree: Any, format_: str) -> str | None:
    if isinstance(tree, dict):
        if not all(isinstance(name, str) for name in tree):
            return "a name that is no text"
        return next((fault for item in tree.values() if (fault := _fault_in_values(item, format_))), None)
    if isinstance(tree, list):
        return next((fault for item in tree if (fault := _fault_in_values(item, format_))), None)
    if isinstance(tree, _DATES) and format_ != "toml":
        return "a date, which is written in quotes"
    if isinstance(tree, float) and not math.isfinite(tree):
        return "a number that is infinite or none"
    if not isinstance(tree, str | int | float | None | datetime.date | datetime.time):
        return "a value that is neither text, number, truth, array nor table"
    return None if typed_value.is_text(tree) else "a lone surrogate, which is no Unicode text"
