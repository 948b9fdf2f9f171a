"""Writing rendered files into an Agent Home, and nowhere else, whatever the agent has put in the way.

The agent works in this folder and may have replaced any name in it by a symbolic link, so every folder is opened
relative to the one above it, without following links (open(2), O_NOFOLLOW): no path is ever resolved twice.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kt_manifest import exit_codes, home_names, replacing, toml_text, words
from kt_manifest.launch import native_path

HEADER = "# Rendered by kt"
"""How every rendered file begins: only a file that does so is removed again."""


class RenderRefused(Exception):
    """A rendered file cannot be put where the adapter wants it."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: str, *, got: str) -> None:
        self.path = path
        self.got = got
        self.wanted = "a place inside the Agent Home, free or with a regular file, under real folders"
        self.do = "move what is there out of the way"
        super().__init__(
            f"cannot render {words.shown_path(path)}: got {got}, wanted {self.wanted}; {self.do}"
        )


LIMIT_BYTES = 4 * 1024 * 1024
"""How large an agent's file may be that is read: room for values of 1 MB, none for a log under a wrong name."""
LIMIT_OF_OURS_BYTES = 128 * 1024 * 1024
"""How large a file of kt's own may be: it holds copies of those."""


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """One file of a launch: path relative to the Agent Home, text, permissions.

    Empty text means that no key has a value for it: what was rendered there before is removed, and nothing else. A
    file that is not `marked` has no line that says whose it is, since its format has no comments. `ours` is one of kt's
    own (`home_names`).
    """

    path: str
    content: str = field(repr=False)
    mode: int = 0o600
    marked: bool = True
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is there: its bytes, and its permissions."""

    data: bytes = field(repr=False)
    mode: int


@contextmanager
def opened(home: Path) -> Iterator[int]:
    """Give a descriptor on the Agent Home, which nobody else of us writes to meanwhile. Raises RenderRefused."""
    try:
        with replacing.locked(home) as root:
            yield root
    except (OSError, replacing.Locked) as error:
        raise RenderRefused(
            words.shown_path(home), got=getattr(error, "strerror", None) or str(error)
        ) from error


def write_files(home: Path, files: Sequence[RenderedFile]) -> None:
    """Write every file, each atomically, with missing folders made 0700.

    Raises:
        RenderRefused: an unsafe path, something other than a folder or regular file in the way, no permission, no
            space. Files before it in the sequence have been written.
    """
    if not files:
        return
    with opened(home) as root:
        for file in files:
            write(root, file)


def read_file(home: Path, path: str) -> bytes | None:
    """Return what is in a file inside the Agent Home; None where there is none that could be read without a link."""
    if native_path.fault(path):
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    *names, name = native_path.segments(path)
    opened: list[int] = []
    try:
        opened.append(os.open(home, flags | os.O_DIRECTORY))
        for folder in names:
            opened.append(os.open(folder, flags | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(name, flags, dir_fd=opened[-1]))
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            return None
        with os.fdopen(os.dup(opened[-1]), "rb") as file:
            return file.read()
    except OSError:
        return None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def make_folders(home: Path, folders: Sequence[str]) -> None:
    """Make folders inside the Agent Home where they are missing, 0700 each; what is in them is never looked at.

    Raises:
        RenderRefused: an unsafe path, something other than a folder in the way (a symbolic link included), no
            permission, no space. Folders before it in the sequence have been made.
    """
    if not folders:
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    for path in folders:
        if fault := native_path.fault(path):
            raise RenderRefused(path, got=fault)
        try:
            root = os.open(home, flags)
            try:
                with _folder(root, list(native_path.segments(path)), path, make=True):
                    pass
            finally:
                os.close(root)
        except OSError as error:
            raise RenderRefused(path, got=error.strerror or str(error)) from error


def write(root: int, file: RenderedFile) -> None:
    """Write one file below the open Agent Home, or remove one of ours. Raises RenderRefused."""
    if file.content:
        put(root, file.path, file.content.encode(), mode=file.mode, ours=file.ours)
        return
    with _place(root, file.path, make=False, ours=file.ours) as (folder, name, there):
        if folder is not None and there and _is_ours(folder, name):
            os.unlink(name, dir_fd=folder)


def put(root: int, path: str, data: bytes, *, mode: int, ours: bool = False) -> None:
    """Replace a file below the open Agent Home, its folders made where they are missing. Raises RenderRefused.

    `ours` is said where the path may be one of kt's own, here and in the two that follow.
    """
    with _place(root, path, make=True, ours=ours) as (folder, name, _):
        assert folder is not None, "made"
        replacing.replace_at(folder, name, data, mode=mode)


def read(root: int, path: str, *, ours: bool = False) -> Found | None:
    """Return a file below the open Agent Home, None where there is none. Raises RenderRefused."""
    with _place(root, path, make=False, ours=ours) as (folder, name, there):
        if folder is None or not there:
            return None
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=folder)
        try:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o777
            return Found(toml_text.read(descriptor, LIMIT_OF_OURS_BYTES if ours else LIMIT_BYTES), mode)
        finally:
            os.close(descriptor)


def remove(root: int, path: str, *, ours: bool = False) -> None:
    """Remove a file below the open Agent Home, where there is one. Raises RenderRefused."""
    with _place(root, path, make=False, ours=ours) as (folder, name, there):
        if folder is not None and there:
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)


@contextmanager
def _place(
    root: int, path: str, *, make: bool, ours: bool = False
) -> Iterator[tuple[int | None, str, str | None]]:
    """Give the folder of a file, open, its name there, and what is at it; no folder where one is missing."""
    if (fault := native_path.fault(path)) and not (ours and path in home_names.TABLE):
        raise RenderRefused(path, got=fault)
    *folders, name = native_path.segments(path)
    try:
        with _folder(root, folders, path, make=make) as folder:
            there = None if folder is None else _kind_at(folder, name)
            if there not in (None, "a regular file"):
                raise RenderRefused(path, got=f"{there} at {words.shown(name)}")
            yield folder, name, there
    except OSError as error:
        raise RenderRefused(path, got=error.strerror or str(error)) from error


@contextmanager
def _folder(root: int, names: list[str], path: str, *, make: bool) -> Iterator[int | None]:
    # None: a folder is missing, and nothing is to be written that would need it.
    opened = [os.dup(root)]
    try:
        for name in names:
            there = _kind_at(opened[-1], name)
            if there is None and not make:
                yield None
                return
            if there not in (None, "a folder"):
                raise RenderRefused(path, got=f"{there} at {words.shown(name)}")
            if there is None:
                os.mkdir(name, 0o700, dir_fd=opened[-1])
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            opened.append(os.open(name, flags, dir_fd=opened[-1]))
        yield opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _kind_at(folder: int, name: str) -> str | None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    kinds = {stat.S_ISREG: "a regular file", stat.S_ISDIR: "a folder", stat.S_ISLNK: "a symbolic link"}
    return next((word for is_kind, word in kinds.items() if is_kind(mode)), "something that is no file")


def _is_ours(folder: int, name: str) -> bool:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        return os.read(descriptor, len(HEADER)) == HEADER.encode()
    finally:
        os.close(descriptor)
