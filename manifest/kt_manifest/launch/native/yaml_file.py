"""YAML files: `ruamel.yaml` says where everything stands, and values go in and out between the characters of the rest.

Its own writer is not used: it lays out indentation, quotes and line ends anew. What we write is read alike by YAML 1.1
and 1.2: texts in double quotes, JSON for the rest.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kt_manifest.launch.native.tree import Path
from kt_manifest.launch.native.unreadable import Uneditable, Unreadable

LIMIT_NODES = 200_000
"""How much a document may be, its aliases followed: a kilobyte of them can stand for a billion nodes."""
LIMIT_CHARS, LIMIT_BLANKS = 1536 * 1024, 250_000
LIMIT_TOKENS, LIMIT_FLOW_DEPTH = 30_000, 100
"""The reader takes 30 us for a token, 3 us for a space or a line, and n squared for brackets in brackets (0.18)."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])  # YAML 1.1
# What JSON leaves as it is and YAML does not take, or folds (YAML 1.2.2, 5.1 and 5.4).
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def read(text: str) -> dict[str, Any]:
    """Return the document; an empty one is an empty table. Raises Unreadable."""
    import ruamel.yaml

    root = _compose(text)
    if root is None:
        return {}
    _bound(root)
    try:
        value = ruamel.yaml.YAML(typ="safe", pure=True).constructor.construct_document(root)
    except Exception as error:  # an unknown tag, a key twice; constructors raise whatever Python does
        raise _unreadable(error) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable("something else than a mapping", line=root.start_mark.line + 1)
    return value


def write(tree: dict[str, Any]) -> str:
    """Return a document of its own, in block style."""
    return "".join(_lines(tree, ""))


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path; the mappings above it are made where they are missing."""
    return _put_raw(text, path, " " + _scalar(value))


def restore(text: str, path: Path, original: str) -> str:
    """Return the text with what stands at `path` in `original`, as it is spelled there."""
    member = _find(original, path)[1]
    assert member is not None, "the caller has looked"
    return _put_raw(text, path, original[member.colon : member.end])


def remove(text: str, path: Path) -> str:
    """Return the text without the lines of a path's last name; the mapping above it stays, empty or not."""
    chain, gone = _find(text, path)
    assert gone is not None, "the caller has looked"
    above = _mapping(chain, len(path) - 1)
    members = list(_members(text, above))
    at = next(index for index, member in enumerate(members) if member.key == gone.key)
    if above.flow_style:
        return _remove_from_flow(text, members, at)
    if len(members) == 1:
        return _empty(text, chain, gone)
    start = text.rindex("\n", 0, gone.key) + 1 if "\n" in text[: gone.key] else 0
    newline = text.find("\n", gone.end)
    return text[:start] + ("" if newline < 0 else text[newline + 1 :])


@dataclass(frozen=True, slots=True)
class _Member:
    """Where a pair of a mapping stands: its key is at `key`, `colon` is behind the colon, `end` behind the value."""

    name: object
    key: int
    colon: int
    end: int
    value: Any


def _compose(text: str) -> Any:
    import ruamel.yaml
    from ruamel.yaml.scanner import Scanner

    if len(text) > LIMIT_CHARS:
        raise Unreadable(f"more than {LIMIT_CHARS // 1024} KiB", line=1)
    if text.count(" ") + text.count("\n") > LIMIT_BLANKS:
        raise Unreadable(f"more than {LIMIT_BLANKS} spaces and lines", line=1)
    left = LIMIT_TOKENS

    class Bounded(Scanner):
        def fetch_more_tokens(self) -> Any:
            nonlocal left
            left -= 1
            if left < 0 or self.flow_level > LIMIT_FLOW_DEPTH:
                got = (
                    "nested too deeply"
                    if left >= 0
                    else f"more than {LIMIT_TOKENS} names, values and brackets"
                )
                raise Unreadable(got, line=self.reader.line + 1)
            return super().fetch_more_tokens()

    reader = ruamel.yaml.YAML(typ="safe", pure=True)
    reader.Scanner = Bounded
    try:
        return reader.compose(text)
    except Unreadable:
        raise
    except Exception as error:  # as above
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> Unreadable:
    if isinstance(error, RecursionError):
        return Unreadable("nested too deeply", line=1)
    mark = getattr(error, "problem_mark", None)
    # What is wrong in a key or a tag would quote what stands there.
    known = {
        "ReaderError": "a character that YAML does not allow",
        "DuplicateKeyError": "a key that stands twice",
    }
    problem = getattr(error, "problem", None)
    reason = known.get(type(error).__name__) or (
        str(problem) if problem and _is_syntax(error) else "no plain YAML"
    )
    return Unreadable(reason.split("\n")[0], line=1 if mark is None else mark.line + 1)


def _is_syntax(error: Exception) -> bool:
    return type(error).__name__ in ("ScannerError", "ParserError")


def _bound(root: Any) -> None:
    """Refuse what is huge once its aliases are followed, and what contains itself."""
    sizes: dict[int, int] = {}
    stack = [(root, False)]
    open_nodes: set[int] = set()
    while stack:
        node, done = stack.pop()
        children = _children(node)
        if done:
            open_nodes.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
            if sizes[id(node)] > LIMIT_NODES:
                raise Unreadable(f"more than {LIMIT_NODES} values", line=node.start_mark.line + 1)
        elif id(node) in open_nodes:
            raise Unreadable("an alias of what it stands in", line=node.start_mark.line + 1)
        elif id(node) not in sizes:
            open_nodes.add(id(node))
            stack.append((node, True))
            stack += [(child, False) for child in children]


def _children(node: Any) -> list[Any]:
    if not isinstance(node.value, list):
        return []
    return [child for item in node.value for child in (item if isinstance(item, tuple) else (item,))]


def _members(text: str, mapping: Any) -> Iterator[_Member]:
    for key, value in mapping.value:
        colon = text.find(":", key.end_mark.index)
        if colon < 0 or text[key.end_mark.index : colon].strip():
            raise Uneditable("a key that is not followed by its colon")
        yield _Member(key.value, key.start_mark.index, colon + 1, max(colon + 1, _end(text, value)), value)


def _end(text: str, node: Any) -> int:
    """Return where the last character of a value stands; a block's own mark lies behind the blank lines after it."""
    if isinstance(node.value, list) and not node.flow_style and node.value:
        last = node.value[-1]
        if isinstance(last, tuple):
            return max(int(last[0].end_mark.index) + 1, _end(text, last[1]))
        return max(int(node.start_mark.index), _end(text, last))
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    if start == end:  # nothing: its mark lies wherever the next thing begins
        return 0
    return start + len(text[start:end].rstrip("\r\n")) if getattr(node, "style", None) in ("|", ">") else end


def _find(text: str, path: Path) -> tuple[list[Any], _Member | None]:
    """Return the mappings along a path as far as they are there, the root first, and the path's own pair."""
    mapping = _compose(text)
    chain: list[Any] = []
    member = None
    for name in path:
        if mapping is None or not isinstance(mapping.value, list) or _is_empty_block(mapping):
            return chain, None
        chain.append(mapping)
        member = next((member for member in _members(text, mapping) if member.name == name), None)
        if member is None:
            return chain, None
        mapping = member.value
    return chain, member


def _is_empty_block(node: Any) -> bool:
    return not node.value and not node.flow_style


def _mapping(chain: list[Any], depth: int) -> Any:
    if depth >= len(chain):
        raise Uneditable("a mapping that is not there")
    return chain[depth]


def _put_raw(text: str, path: Path, raw: str) -> str:
    chain, there = _find(text, path)
    if there is not None:
        return text[: there.colon] + raw + text[there.end :]
    if not chain:  # nothing, comments, or a document of null
        return _at_end(text, path, raw)
    depth = len(chain) - 1
    for name in reversed(path[depth + 1 :]):
        raw = f" {{{_name(name)}:{raw}}}"
    mapping, member = chain[-1], f"{_name(path[depth])}:{raw}"
    members = list(_members(text, mapping))
    if mapping.flow_style:
        return _into_flow(text, mapping, members, member)
    indent = " " * int(mapping.start_mark.column)
    return _after_line(text, members[-1].end, indent + member)


def _into_flow(text: str, mapping: Any, members: list[_Member], member: str) -> str:
    if not members:
        opening = text.index("{", mapping.start_mark.index)
        return text[: opening + 1] + member + text[text.index("}", opening) :]
    at = members[-1].end
    return text[:at] + ", " + member + text[at:]


def _after_line(text: str, at: int, line: str) -> str:
    newline = text.find("\n", at)
    if newline < 0:
        return f"{text}\n{line}\n"
    ending = "\r\n" if text[newline - 1 : newline] == "\r" else "\n"
    return text[: newline + 1] + line + ending + text[newline + 1 :]


def _at_end(text: str, path: Path, raw: str) -> str:
    name, *rest = path
    for inner in reversed(rest):
        raw = f" {{{_name(inner)}:{raw}}}"
    if text and not text.endswith("\n"):
        text += "\n"
    return f"{text}{_name(name)}:{raw}\n"


def _remove_from_flow(text: str, members: list[_Member], at: int) -> str:
    if at > 0:
        return text[: members[at - 1].end] + text[members[at].end :]
    if len(members) > 1:
        return text[: members[0].key] + text[members[1].key :]
    return text[: members[0].key] + text[members[0].end :]


def _empty(text: str, chain: list[Any], gone: _Member) -> str:
    """Take the only pair out of a block mapping: what is left of it says `{}`."""
    start = text.rindex("\n", 0, gone.key) + 1 if "\n" in text[: gone.key] else 0
    newline = text.find("\n", gone.end)
    rest = "" if newline < 0 else text[newline + 1 :]
    if len(chain) == 1:
        return text[:start] + rest
    owner = next(member for member in _members(text, chain[-2]) if member.value is chain[-1])
    return text[: owner.colon] + " {}" + text[owner.colon : start] + rest


def _lines(tree: dict[str, Any], indent: str) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{_name(name)}:\n"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{_name(name)}: {_scalar(value)}\n"


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) and name.lower() not in _WORDS else _scalar(name)


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_name(name)}: {_scalar(inner)}" for name, inner in value.items()) + "}"
    plain = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in plain:  # YAML 1.1 takes 1e+16 for a text ("Float")
        return plain.replace("e", ".0e")
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)
