"""Files of `NAME=value` lines, as dotenv, Compose and systemd read them: only the lines of our names change.

Dialects differ in what they expand, so a value of ours is written in the spelling that all of them read alike: bare
where it is made of harmless characters, else in single quotes, and in double quotes with escapes where it holds a
single quote or a line end.
"""

import re
from dataclasses import dataclass
from typing import Any

from kt_manifest.launch.native.tree import Path
from kt_manifest.launch.native.unreadable import Uneditable, Unreadable

LIMIT_LINES = 50_000
"""How many lines a file may have: each is looked at, several times in a start."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_ENTRY = re.compile(rf"[ \t]*(?:export[ \t]+)?({NAME.pattern})[ \t]*=[ \t]*", re.ASCII)
_NOTHING = re.compile(r"[ \t]*(?:#.*)?$")
_HARMLESS = re.compile(r"[A-Za-z0-9_./:@%+,-]*", re.ASCII)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "$": "\\$", "`": "\\`", "\n": "\\n", "\r": "\\r"}
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One `NAME=value`: the whole of it is `[start:end]`, line ends included, the value `[value:value_end]`."""

    name: str
    start: int
    value: int
    value_end: int
    end: int
    text: str


def read(text: str) -> dict[str, Any]:
    """Return the variables; of a name that stands twice the later counts. Raises Unreadable."""
    return {entry.name: entry.text for entry in _entries(text)}


def write(tree: dict[str, Any]) -> str:
    """Return a document of its own."""
    return "".join(f"{name}={_quoted(value)}\n" for name, value in tree.items())


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with a variable set: in its last line, or in a line of its own at the end."""
    (name,) = path
    entry = _last(text, name)
    if entry is not None:
        return text[: entry.value] + _quoted(value) + text[entry.value_end :]
    return _append(text, f"{name}={_quoted(value)}")


def restore(text: str, path: Path, original: str) -> str:
    """Return the text with the value that the variable has in `original`, as it is spelled there."""
    (name,) = path
    before, entry = _last(original, name), _last(text, name)
    assert before is not None and entry is not None, "the caller has looked"
    return text[: entry.value] + original[before.value : before.value_end] + text[entry.value_end :]


def remove(text: str, path: Path) -> str:
    """Return the text without the variable's last line."""
    (name,) = path
    entry = _last(text, name)
    assert entry is not None, "the caller has looked"
    return text[: entry.start] + text[entry.end :]


def _last(text: str, name: str) -> _Entry | None:
    return next((entry for entry in reversed(_entries(text)) if entry.name == name), None)


def _append(text: str, line: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    return text + line + newline


def _entries(text: str) -> list[_Entry]:
    if text.count("\n") > LIMIT_LINES:
        raise Unreadable(f"more than {LIMIT_LINES} lines", line=1)
    found: list[_Entry] = []
    at = 0
    while at < len(text):
        newline = text.find("\n", at)
        end = len(text) if newline < 0 else newline + 1
        line = text[at:end].rstrip("\r\n")
        if not _NOTHING.match(line):
            entry = _entry(text, at)
            found.append(entry)
            end = entry.end
        at = end
    return found


def _entry(text: str, at: int) -> _Entry:
    opening = _ENTRY.match(text, at)
    if opening is None:
        raise _unreadable("something else than NAME=value", text, at)
    value = opening.end()
    quote = text[value : value + 1]
    if quote in ("'", '"') and quote:
        plain, value_end = _in_quotes(text, value, quote)
    else:
        end = _line_end(text, value)
        bare = text[value:end]
        comment = re.search(r"(?:^|[ \t])#", bare)
        plain = (bare[: comment.start()] if comment else bare).rstrip(" \t")
        value_end = value + len(plain)
    end = _line_end(text, value_end)
    if not _NOTHING.match(text[value_end:end]):
        raise _unreadable("text behind a closing quote", text, at)
    newline = re.compile(r"\r?\n?").match(text, end)
    assert newline is not None
    return _Entry(opening[1], at, value, value_end, newline.end(), plain)


def _line_end(text: str, at: int) -> int:
    newline = text.find("\n", at)
    end = len(text) if newline < 0 else newline
    return end - 1 if end > at and text[end - 1] == "\r" else end


def _unreadable(reason: str, text: str, at: int) -> Unreadable:
    # Counted for a refusal alone: for each entry, it would take time in n squared.
    return Unreadable(reason, line=text.count("\n", 0, at) + 1)


def _in_quotes(text: str, at: int, quote: str) -> tuple[str, int]:
    pattern = r"'([^']*)'" if quote == "'" else r'"((?:[^"\\]|\\.)*+)"'
    found = re.compile(pattern, re.DOTALL).match(text, at)
    if found is None:
        raise _unreadable("a quote that is never closed", text, at)
    if quote == "'":
        return found[1], found.end()
    plain = re.sub(r"\\(.)", lambda escape: _UNESCAPED.get(escape[1], escape[1]), found[1], flags=re.DOTALL)
    return plain, found.end()


def _quoted(value: Any) -> str:
    if not isinstance(value, str):
        raise Uneditable("a value that is no text")
    if value and _HARMLESS.fullmatch(value):
        return value
    if not set(value) & {"'", "\n", "\r"}:
        return f"'{value}'"
    return '"' + "".join(_ESCAPES.get(char, char) for char in value) + '"'
