"""Settings as native files know them: the text of a setting read as a number, a truth, an array or JSON. Pure."""

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from kt_manifest.configuration.value_types import Value
from kt_manifest.launch.native import json_file
from kt_manifest.launch.native.unreadable import Unreadable

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NUMBER_CHARS = 64


class Unfit(Exception):
    """The text is no value of the type."""


WANTED: Mapping[str, str] = {
    "string": "text",
    "integer": "a whole number from -2^63 to 2^63-1",
    "number": "a number such as 1, -0.5 or 1e-3",
    "boolean": "true or false",
    "array": "words, separated and quoted as in a shell",
    "json": "a JSON value",
}


def convert(type_: str | None, value: Value) -> Any:
    """Return what a native file holds for a setting; without a type, text and arrays of texts stay as they are.

    Raises:
        Unfit: it is none of that type.
    """
    return value if type_ is None else _CONVERT[type_](value)


def as_text(value: Value) -> str:
    """Return a setting as one text: a list as a shell would read it."""
    return value if isinstance(value, str) else shlex.join(value)


def is_text(value: Any) -> bool:
    """Tell whether every text in a value can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return False
    return True


def _integer(value: Value) -> Any:
    if not isinstance(value, str) or not _INTEGER.fullmatch(value) or not -(2**63) <= int(value) < 2**63:
        raise Unfit
    return int(value)


def _number(value: Value) -> Any:
    if not isinstance(value, str) or len(value) > _NUMBER_CHARS or not _NUMBER.fullmatch(value):
        raise Unfit
    if _INTEGER.fullmatch(value):
        return _integer(value)
    if math.isinf(float(value)):
        raise Unfit
    return float(value)


def _boolean(value: Value) -> Any:
    if value not in ("true", "false"):
        raise Unfit
    return value == "true"


def _array(value: Value) -> Any:
    if not isinstance(value, str):
        return list(value)
    try:
        return shlex.split(value)
    except ValueError as error:  # a quote that is not closed
        raise Unfit from error


def _json(value: Value) -> Any:
    if not isinstance(value, str):
        return list(value)
    try:
        found = json_file.parse(value)
    except Unreadable as error:
        raise Unfit from error
    if not is_text(found):
        raise Unfit
    return found


_CONVERT: Mapping[str, Callable[[Value], Any]] = {
    "string": as_text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "json": _json,
}
