"""Finding the members of a JSON object as it streams by, without keeping it.

`Members` walks over one JSON object of any size in constant memory and keeps only the top-level members it was asked
for, each up to a limit. It does not validate: it is for finding things in bodies too large to parse, and for finding
where a member stands. Law: on valid JSON it agrees with `json.loads` on every wanted member (tested).
"""

import json
import re
from collections.abc import Mapping
from typing import Any

LIMIT_BYTES = 64 << 10

_SPACE = b" \t\r\n"
_NOTHING: Mapping[str, frozenset[str]] = {}
# Runs up to the next byte that matters; strings that end in this chunk are skipped whole, in C.
_NESTED = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_SURFACE = re.compile(rb'[^"{}\[\],:]*+')
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)

_QUOTE, _BACKSLASH, _COLON, _COMMA = b'"\\:,'
_OPENING, _CLOSING = b"{[", b"}]"


class Members:
    """Feed it an object's bytes; it keeps the wanted top-level members' bytes and where their values stand."""

    def __init__(
        self,
        wanted: frozenset[str],
        *,
        inside: Mapping[str, frozenset[str]] = _NOTHING,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        """Take the names wanted, and of which members the members are wanted (instead of the whole)."""
        self._wanted = {json.dumps(name).encode()[1:-1]: name for name in wanted.union(inside)}
        self._inside = inside
        self._inner: Members | None = None  # reads the value being read, where its members are wanted
        self.nested: dict[str, Members] = {}
        self._limit_bytes = limit_bytes
        self._base = 0  # offset of the current chunk
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._key: bytearray | None = None  # the key being read or last read; None before a key
        self._value: bytearray | None = None  # the wanted value being read
        self._value_at = 0
        self._after_colon = False
        self.found: dict[str, bytes] = {}
        self.spans: dict[str, tuple[int, int]] = {}
        self.repeated: set[str] = set()
        self.overlong: set[str] = set()
        self.complete = False
        self.is_object = True

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        at = 0
        if self._depth == 0 and not self.complete:
            at = self._enter(data)
        end = len(data)
        while at < end and self._depth > 0:
            at = self._string(data, at) if self._in_string else self._outside(data, at)
        self._base += end

    def _enter(self, data: bytes) -> int:
        if not self.is_object:
            return len(data)
        start = len(data) - len(data.lstrip(_SPACE))
        if start == len(data):
            return start
        if data[start : start + 1] != b"{":
            self.is_object = False
            return len(data)
        self._depth = 1
        return start + 1

    def _string(self, data: bytes, at: int) -> int:
        start = at
        if self._escaped:
            self._escaped = False
            at += 1
        stop = _STRING.match(data, at)
        assert stop is not None
        at = stop.end()
        if at < len(data):
            # Either the closing quote, or a backslash whose partner is in the next chunk.
            self._escaped = data[at] == _BACKSLASH
            self._in_string = self._escaped
            at += 1
        self._keep(data[start:at])
        return at

    def _outside(self, data: bytes, at: int) -> int:
        start = at
        stop = (_SURFACE if self._depth == 1 else _NESTED).match(data, at)
        assert stop is not None
        at = stop.end()
        if at == len(data):
            self._keep(data[start:at])
            return at
        byte = data[at]
        if self._depth == 1 and byte in b",}":
            self._keep(data[start:at])
            self._finish_member(self._base + at)
            self._depth -= byte != _COMMA
            self.complete = self._depth == 0
            return at + 1
        if self._depth == 1 and byte == _COLON and not self._after_colon:
            self._begin_value(self._base + at + 1)
            return at + 1
        if byte == _QUOTE:
            self._in_string = True
            if not self._after_colon and self._depth == 1:
                self._key = bytearray()
                return at + 1
        elif byte in _OPENING:
            self._depth += 1
        elif byte in _CLOSING:
            self._depth -= 1
        self._keep(data[start : at + 1])
        return at + 1

    def _keep(self, run: bytes) -> None:
        if self._inner is not None:
            self._inner.feed(run)
        elif self._value is not None:
            if len(self._value) + len(run) > self._limit_bytes:
                self._overflow()
            else:
                self._value += run
        elif not self._after_colon and self._key is not None and len(self._key) < 256:
            self._key += run[:256]

    def _overflow(self) -> None:
        self.overlong.add(self._name() or "")
        self._value = None

    def _name(self) -> str | None:
        key = bytes(self._key or b"")
        key = key[: key.rfind(b'"')]
        if _BACKSLASH not in key:
            return self._wanted.get(key)
        try:
            return self._wanted.get(json.dumps(json.loads(b'"%b"' % key)).encode()[1:-1])
        except ValueError:
            return None

    def _begin_value(self, offset: int) -> None:
        self._after_colon = True
        self._value_at = offset
        name = self._name()
        if name is None:
            return
        if name in self._inside:
            self._inner = Members(self._inside[name], limit_bytes=self._limit_bytes)
        else:
            self._value = bytearray()

    def _finish_member(self, offset: int) -> None:
        name = self._name() if self._after_colon else None
        if name is not None:
            if name in self.spans:
                self.repeated.add(name)
            self.spans[name] = (self._value_at, offset)
            self.found.pop(name, None)
            self.nested.pop(name, None)
            if self._inner is not None:
                self.nested[name] = self._inner
            elif self._value is not None:
                self.found[name] = bytes(self._value)
        self._key, self._value, self._inner, self._after_colon = None, None, None, False

    @property
    def is_repeated(self) -> bool:
        """Whether a wanted member was named twice, here or inside."""
        return bool(self.repeated) or any(inner.repeated for inner in self.nested.values())

    @property
    def is_overlong(self) -> bool:
        """Whether a wanted member was too long to keep, here or inside."""
        return bool(self.overlong) or any(inner.overlong for inner in self.nested.values())

    def document(self) -> dict[str, Any]:
        """Return the wanted members that were found whole, parsed; members that do not parse are left out."""
        parsed: dict[str, Any] = {
            name: inner.document()
            for name, inner in self.nested.items()
            if inner.is_object and inner.complete
        }
        for name, raw in self.found.items():
            try:
                parsed[name] = json.loads(raw)
            except (ValueError, RecursionError):
                continue
        return parsed
