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

from kt_manifest import replacing, words
from kt_manifest.launch import native_path

HEADER = "# Rendered by kt"
"""How every rendered file begins: only a file that does so is removed again."""


class RenderRefused(Exception):
    """A rendered file cannot be put where the adapter wants it."""

    exit_code = 1

    def __init__(self, path: str, *, got: str) -> None:
        self.path = path
        self.got = got
        self.wanted = "a place inside the Agent Home, free or with a regular file, under real folders"
        self.do = "move what is there out of the way"
        super().__init__(
            f"cannot render {words.shown_path(path)}: got {got}, wanted {self.wanted}; {self.do}"
        )


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """One file of a launch: path relative to the Agent Home, text, permissions.

    Empty text means that no key has a value for it: what was rendered there before is removed, and nothing else.
    """

    path: str
    content: str = field(repr=False)
    mode: int = 0o600


def write_files(home: Path, files: Sequence[RenderedFile]) -> None:
    """Write every file, each atomically, with missing folders made 0700.

    Raises:
        RenderRefused: an unsafe path, something other than a folder or regular file in the way, no permission, no
            space. Files before it in the sequence have been written.
    """
    if not files:
        return
    try:
        with replacing.locked(home) as root:
            for file in files:
                _write(root, file)
    except (OSError, replacing.Locked) as error:
        raise RenderRefused(
            words.shown_path(home), got=getattr(error, "strerror", None) or str(error)
        ) from error


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
        place = RenderedFile(path, content="a folder")
        try:
            root = os.open(home, flags)
            try:
                with _folder(root, list(native_path.segments(path)), place):
                    pass
            finally:
                os.close(root)
        except OSError as error:
            raise RenderRefused(path, got=error.strerror or str(error)) from error


def _write(root: int, file: RenderedFile) -> None:
    if fault := native_path.fault(file.path):
        raise RenderRefused(file.path, got=fault)
    *folders, name = native_path.segments(file.path)
    try:
        with _folder(root, folders, file) as folder:
            if folder is None:
                return
            there = _kind_at(folder, name)
            if there not in (None, "a regular file"):
                raise RenderRefused(file.path, got=f"{there} at {words.shown(name)}")
            if file.content:
                replacing.replace_at(folder, name, file.content.encode(), mode=file.mode)
            elif there and _is_ours(folder, name):
                os.unlink(name, dir_fd=folder)
    except OSError as error:
        raise RenderRefused(file.path, got=error.strerror or str(error)) from error


@contextmanager
def _folder(root: int, names: list[str], file: RenderedFile) -> Iterator[int | None]:
    # None: a folder is missing, and nothing is to be written that would need it.
    opened = [os.dup(root)]
    try:
        for name in names:
            there = _kind_at(opened[-1], name)
            if there is None and not file.content:
                yield None
                return
            if there not in (None, "a folder"):
                raise RenderRefused(file.path, got=f"{there} at {words.shown(name)}")
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
