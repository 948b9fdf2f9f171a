"""JSON files: values are put in and taken out between the characters of the rest, which stay as they are.

RFC 8259 as it stands: no comments, no NaN, no name twice in an object (which of the two an agent takes is its own
affair, so neither may be touched).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kt_manifest.launch.native.tree import Path
from kt_manifest.launch.native.unreadable import Unreadable

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def read(text: str) -> dict[str, Any]:
    """Return the document. Raises Unreadable: no JSON, or no object."""
    value = parse(text)
    if not isinstance(value, dict):
        raise Unreadable("something else than an object", line=1)
    return value


def parse(text: str) -> Any:
    """Return any JSON value. Raises Unreadable."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise Unreadable(error.msg, line=error.lineno) from error
    except RecursionError as error:
        raise Unreadable("nested too deeply", line=1) from error
    except ValueError as error:  # a name twice, a constant, an integer beyond Python's limit
        raise Unreadable(str(error).split(":")[0], line=1) from error


def write(tree: dict[str, Any]) -> str:
    """Return a document of its own."""
    return json.dumps(tree, ensure_ascii=False, indent=2) + "\n"


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path; the objects above it are made where they are missing."""
    return _put_raw(text, path, json.dumps(value, ensure_ascii=False))


def restore(text: str, path: Path, original: str) -> str:
    """Return the text with what stands at `path` in `original`, as it is spelled there."""
    member = _find(original, path)[-1]
    assert member is not None, "the caller has looked"
    return _put_raw(text, path, original[member.value : member.end])


def remove(text: str, path: Path) -> str:
    """Return the text without the member at a path; its object stays."""
    members = _find(text, path)
    gone, above = members[-1], members[-2] if len(members) > 1 else None
    assert gone is not None, "the caller has looked"
    there = list(_members(text, _start(text) if above is None else above.value))
    at = next(index for index, member in enumerate(there) if member.key == gone.key)
    if at > 0:
        return text[: there[at - 1].end] + text[gone.end :]
    if len(there) > 1:
        return text[: gone.key] + text[there[1].key :]
    opening, closing = text.rindex("{", 0, gone.key), text.index("}", gone.end)
    return text[: opening + 1] + text[closing:]


@dataclass(frozen=True, slots=True)
class _Member:
    """Where a member stands: its name begins at `key`, its value is `[value:end]`."""

    name: str
    key: int
    value: int
    end: int


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name that stands twice in one object")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name}, which is no JSON")


def _start(text: str) -> int:
    found = _SPACE.match(text)
    assert found is not None
    return found.end()


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _members(text: str, at: int) -> Iterator[_Member]:
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, end = _DECODER.raw_decode(text, at)
        value = _skip(text, _skip(text, end) + 1)  # past the colon
        _, value_end = _DECODER.raw_decode(text, value)
        yield _Member(name, at, value, value_end)
        at = _skip(text, value_end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _find(text: str, path: Path) -> list[_Member | None]:
    """Return the members along a path, None for the first that is not there."""
    at, found = _start(text), list[_Member | None]()
    for name in path:
        member = next((member for member in _members(text, at) if member.name == name), None)
        found.append(member)
        if member is None:
            break
        at = member.value
    return found


def _put_raw(text: str, path: Path, raw: str) -> str:
    found = _find(text, path)
    last = found[-1]
    if last is not None:
        return text[: last.value] + raw + text[last.end :]
    depth = len(found) - 1
    for name in reversed(path[depth + 1 :]):
        raw = f"{{{json.dumps(name, ensure_ascii=False)}: {raw}}}"
    above = found[depth - 1] if depth else None
    member = f"{json.dumps(path[depth], ensure_ascii=False)}: {raw}"
    return _insert(text, _start(text) if above is None else above.value, member)


def _insert(text: str, at: int, member: str) -> str:
    there = list(_members(text, at))
    if not there:
        return text[: at + 1] + member + text[text.index("}", at) :]
    lead = text[at + 1 : there[0].key]
    indent = lead[lead.rindex("\n") :] if "\n" in lead else " "
    if "\r\n" in lead:
        indent = "\r" + indent
    return text[: there[-1].end] + "," + indent + member + text[there[-1].end :]
