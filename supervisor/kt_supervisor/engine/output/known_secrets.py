"""The secrets that this engine knows of its Runs, and texts without them.

A value is known from the moment that a Run is about to begin, before there is anything that could print it. Values
shorter than `LEAST_BYTES` are left alone: to take every `a1` out of a log would maim the log and protect nothing.
"""

import json
import logging
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

LEAST_BYTES = 8
SHOWN = "****"


class KnownSecrets:
    """The values that must not be shown of one Run; no repr and no log shows them."""

    def __init__(self, *values: str) -> None:
        self._texts: frozenset[str] = frozenset()
        self.values: tuple[bytes, ...] = ()
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Know these as well; may be called while other threads look."""
        forms = {form for value in values for form in _forms(value)}
        self._texts = self._texts | {form for form in forms if len(_encoded(form)) >= LEAST_BYTES}
        # The longest first: where one contains another, nothing of the longer one is left.
        self.values = tuple(sorted((_encoded(text) for text in self._texts), key=lambda v: (-len(v), v)))

    @property
    def longest(self) -> int:
        """Return the length of the longest value in bytes, 0 where there is none."""
        return len(self.values[0]) if self.values else 0

    def clean(self, text: str) -> str:
        """Return a text without them."""
        for value in sorted(self._texts, key=len, reverse=True):
            if value in text:
                text = text.replace(value, SHOWN)
        return text

    def clean_facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return facts whose texts are without them."""
        return {name: self.clean(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}

    def __repr__(self) -> str:
        """Return how many there are."""
        return f"KnownSecrets({len(self.values)})"


class KnownOfAll:
    """The secrets of all Runs under way, for what is not about one of them: the engine's log, errors."""

    def __init__(self) -> None:
        self._runs: weakref.WeakSet[KnownSecrets] = weakref.WeakSet()

    def of_run(self, *values: str) -> KnownSecrets:
        """Return what is known of another Run."""
        known = KnownSecrets(*values)
        self._runs.add(known)
        return known

    def clean(self, text: str) -> str:
        """Return a text without any of them."""
        for known in list(self._runs):
            text = known.clean(text)
        return text

    def guard_log(self, root: logging.Logger) -> None:
        """Have every line that this logger's handlers write from now on cleaned."""
        for handler in root.handlers:
            handler.setFormatter(_Cleaned(handler.formatter or logging.Formatter(), self))


class _Cleaned(logging.Formatter):
    def __init__(self, inner: logging.Formatter, known: KnownOfAll) -> None:
        super().__init__()
        self._inner = inner
        self._known = known

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, a traceback included."""
        return self._known.clean(self._inner.format(record))


def _forms(value: str) -> Iterable[str]:
    """Yield what a value looks like when it is printed: as it is, line by line, and inside of JSON or source text."""
    yield value
    for spelled in _spellings(value):
        yield spelled
        yield from _spellings(spelled)  # JSON that stands in JSON
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines)


def _spellings(value: str) -> Iterable[str]:
    """Yield a value as encoders write it inside of a text."""
    yield repr(value)[1:-1]  # Python
    for plain in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        for slashed in (plain, plain.replace("/", "\\/")):  # PHP, json_encode
            yield slashed
            yield slashed.translate(_FOR_HTML)
            yield slashed.translate(_FOR_HTML_CAPITALS)


_FOR_HTML = {ord(character): f"\\u{ord(character):04x}" for character in "&<>"}  # Go, encoding/json
_FOR_HTML_CAPITALS = {
    ord(character): f"\\u{ord(character):04X}" for character in "&<>"
}  # .NET, System.Text.Json


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
