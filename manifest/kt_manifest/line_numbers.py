"""On which line each key of a TOML document stands: `tomllib` does not tell, and people look for the line first.

Only for a text that `tomllib` has accepted: nothing is judged here, so a bracket is where one is expected. Source of
the grammar: TOML 1.0.0.
"""

import re
import tomllib

Path = tuple[str | int, ...]

_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_WITHIN_LINE = re.compile(r"[ \t]*")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}' + r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}#\r\n]+")


def lines(text: str) -> dict[Path, int]:
    """Return the line, from 1, on which each key, table and array element first stands.

    A table that is only implied (`a` in `[a.b]`) stands where it is first implied. What is nested too deeply to be
    walked gives nothing.
    """
    walk = _Walk(text)
    try:
        walk.document()
    except RecursionError:
        return {}
    return walk.found


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._elements: dict[Path, int] = {}  # arrays of tables, and how many elements each has by now
        self.found: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._skip(_BETWEEN):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        of_array = self._text.startswith("[[", self._at)
        self._at += 2 if of_array else 1
        parts = self._key()
        self._at += 2 if of_array else 1
        path: Path = ()
        for part in parts[:-1]:
            path = self._last(self._note((*path, part)))
        path = self._note((*path, parts[-1]))
        if not of_array:
            return self._last(path)
        self._elements[path] = self._elements.get(path, 0) + 1
        return self._note(self._last(path))

    def _last(self, path: Path) -> Path:
        """Return the element that a path means where it names an array of tables: the last one so far."""
        count = self._elements.get(path)
        return path if count is None else (*path, count - 1)

    def _pair(self, table: Path) -> None:
        path = table
        for part in self._key():
            path = self._note((*path, part))
        self._at += 1  # the equals sign
        self._skip(_WITHIN_LINE)
        self._value(path)

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._skip(_WITHIN_LINE)
            parts.append(_unquoted(self._take(_KEY_PART)))
            self._skip(_WITHIN_LINE)
            if self._text[self._at] != ".":
                return parts
            self._at += 1

    def _value(self, path: Path) -> None:
        match self._text[self._at]:
            case "[":
                self._array(path)
            case "{":
                self._inline_table(path)
            case '"' | "'":
                self._take(_STRING)
            case _:
                self._take(_PLAIN)

    def _array(self, path: Path) -> None:
        self._at += 1
        number = 0
        while self._skip(_BETWEEN) and self._text[self._at] != "]":
            self._value(self._note((*path, number)))
            number += 1
            self._skip(_BETWEEN)
            if self._text[self._at] == ",":
                self._at += 1
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while self._skip(_WITHIN_LINE) and self._text[self._at] != "}":
            self._pair(path)
            self._skip(_WITHIN_LINE)
            if self._text[self._at] == ",":
                self._at += 1
        self._at += 1

    def _note(self, path: Path) -> Path:
        self.found.setdefault(path, self._line)
        return path

    def _skip(self, what: re.Pattern[str]) -> bool:
        """Go over what is between two tokens; tell whether there is more."""
        self._take(what)
        return self._at < len(self._text)

    def _take(self, what: re.Pattern[str]) -> str:
        token = what.match(self._text, self._at)
        assert token is not None, "accepted before"
        self._at = token.end()
        self._line += token[0].count("\n")
        return token[0]


def _unquoted(part: str) -> str:
    match part[0]:
        case "'":
            return part[1:-1]
        case '"' if "\\" in part:
            return str(tomllib.loads(f"x = {part}")["x"])
        case '"':
            return part[1:-1]
        case _:
            return part
