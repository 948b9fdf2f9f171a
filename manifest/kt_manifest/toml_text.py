"""Reading TOML that a stranger may have written: bounded in size, depth and time, never blocking.

What `tomllib` does with hostile input (3.12.1, tried): deep nesting raises RecursionError, an integer of more than
4300 digits a plain ValueError, and a dotted key of n parts takes time in n squared (16 000 parts: 3 s). Hence the
limits here. A document of 256 KiB within them parses in under 2 s at worst, an honest one in milliseconds.
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
LIMIT_DOTS_PER_LINE = 1000
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


def parse(text: str) -> dict[str, Any]:
    """Return the document.

    Raises:
        NotToml: syntax, a duplicate key, nesting too deep, or beyond the limits of this module.
    """
    _bound(text)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise NotToml("nested too deeply", line=1) from error
    except ValueError as error:  # TOMLDecodeError is one; so is an integer beyond Python's limit
        reason, line = place(str(error), text)
        raise NotToml(reason, line=line) from error


def _bound(text: str) -> None:
    if len(text) > LIMIT_BYTES:
        raise NotToml(f"more than {LIMIT_BYTES // 1024} KiB", line=1)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > LIMIT_DOTS_PER_LINE:
            raise NotToml(f"more than {LIMIT_DOTS_PER_LINE} dots in one line", line=number)


def place(message: str, text: str) -> tuple[str, int]:
    """Return the reason and the line, from 1, of what `tomllib` says about a text."""
    found = _PLACE.search(message)
    if found is None:
        return message.split(":")[0], 1
    line = int(found[1]) if found[1] else text.rstrip("\n").count("\n") + 1
    return message[: found.start()], line


def _kind_of(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a directory", stat.S_ISFIFO: "a FIFO", stat.S_ISSOCK: "a socket"}
    return next((word for is_kind, word in kinds.items() if is_kind(mode)), "a device")
