"""Reading TOML that a stranger may have written: bounded in size, depth and time, never blocking.

What `tomllib` does with hostile input (3.12.1, tried): deep nesting raises RecursionError, an integer of more than
4300 digits a plain ValueError, and a dotted key of n parts takes time in n squared (16 000 parts: 3 s), as does each
key below a header of that many. `tomlkit` takes 40 us for each key or item, ten times as long. Hence the limits here,
on what stands outside of texts and comments: a document within them is read in less than a second, also by `tomlkit`.
"""

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIMIT_BYTES = 256 * 1024
LIMIT_FILE_BYTES = 1536 * 1024
"""How large a file of an agent's own may be, in which one value may take a megabyte."""
LIMIT_DOTS_PER_LINE = 1000
LIMIT_DOTTED_STEPS = 5_000_000
"""How often a part of a key may be gone over, by what `tomllib` does: 0.3 s."""
LIMIT_MARKS = 20_000
"""How many lines, items and pairs may stand outside of texts."""
_TEXT = re.compile(
    r"#[^\n]*+"
    r'|"""(?:[^"\\]|\\.|"{1,2}(?!"))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"|' + r"'[^'\n]*+'",
    re.DOTALL,
)
# Windows has only the first of these, and no FIFO that could keep anybody waiting.
_READ_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class NotToml(Exception):
    """The text is not TOML, or beyond the limits; `line` counts from 1."""

    def __init__(self, reason: str, *, line: int) -> None:
        self.reason = reason
        self.line = line
        super().__init__(f"line {line}: {reason}")


class NotARegularFile(OSError):
    """There is something at the path that is no regular file."""


class TooLarge(OSError):
    """The file is larger than the limit."""


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Give a descriptor on the regular file at `path`.

    A FIFO or a device is refused without waiting for its other end (open(2), O_NONBLOCK).

    Raises:
        OSError: as open(2) does; NotARegularFile for anything but a file.
        ValueError: the path itself contains a NUL.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # before opening: to open a device can be an act in itself
        raise NotARegularFile(f"{_kind_of(path.stat().st_mode)}, not a regular file")
    descriptor = os.open(path, _READ_FLAGS)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise NotARegularFile(f"{_kind_of(mode)}, not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read(descriptor: int, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Return the rest of an open file.

    Raises:
        TooLarge: there are more than `limit_bytes`; at most one byte more than that is read.
    """
    parts: list[bytes] = []
    left = limit_bytes + 1
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    if not left:
        raise TooLarge(f"more than {limit_bytes // 1024} KiB")
    return b"".join(parts)


def decode(data: bytes) -> str:
    """Return the text of a TOML file: UTF-8 (TOML 1.0.0, "Spec"), a byte order mark at its start tolerated.

    Raises:
        NotToml: the bytes are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotToml(f"byte {error.start} is not UTF-8", line=line) from error


def parse(text: str, *, limit_bytes: int = LIMIT_BYTES) -> dict[str, Any]:
    """Return the document.

    Raises:
        NotToml: syntax, a duplicate key, nesting too deep, or beyond the limits of this module.
    """
    _bound(text, limit_bytes)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise NotToml("nested too deeply", line=1) from error
    except ValueError as error:  # TOMLDecodeError is one; so is an integer beyond Python's limit
        reason, line = _place(str(error), text)
        raise NotToml(reason, line=line) from error


def quoted(text: str) -> str:
    """Return `text` as a basic string of TOML (TOML 1.0.0, "String"), in one line."""
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\U{ord(char):08x}"


def _bound(text: str, limit_bytes: int) -> None:
    if len(text) > limit_bytes:
        raise NotToml(f"more than {limit_bytes // 1024} KiB", line=1)
    bare = _TEXT.sub(lambda found: "\n" * found[0].count("\n"), text)
    steps = deepest = 0
    for number, line in enumerate(bare.split("\n"), start=1):
        dots = line.count(".")
        if dots > LIMIT_DOTS_PER_LINE:
            raise NotToml(f"more than {LIMIT_DOTS_PER_LINE} dots in one line", line=number)
        if line.lstrip(" \t").startswith("["):
            deepest = max(deepest, dots)  # never less: the line may as well be one of an array
        steps += (deepest + dots) * (dots + 1)
        if steps > LIMIT_DOTTED_STEPS:
            raise NotToml("more dotted keys than are read", line=number)
    if sum(map(bare.count, ",=\n")) > LIMIT_MARKS:
        raise NotToml(f"more than {LIMIT_MARKS} lines, items and pairs", line=1)


def _place(message: str, text: str) -> tuple[str, int]:
    # The reason and the line, from 1, of what `tomllib` says about a text.
    found = _PLACE.search(message)
    if found is None:
        return message.split(":")[0], 1
    line = int(found[1]) if found[1] else text.rstrip("\n").count("\n") + 1
    return message[: found.start()], line


def _kind_of(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a directory", stat.S_ISFIFO: "a FIFO", stat.S_ISSOCK: "a socket"}
    return next((word for is_kind, word in kinds.items() if is_kind(mode)), "a device")
