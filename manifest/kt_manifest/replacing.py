"""Replacing a file whole or not at all, below a folder that is already open, and one writer at a time in it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kt_manifest import home_names

TEMPORARY = home_names.TEMPORARY
LOCK_TIMEOUT_S = 5.0
_POLL_S = 0.005


class Locked(Exception):
    """Somebody else has held the folder's lock for too long; `timeout_s` says how long that was."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        super().__init__(f"locked by another process for more than {timeout_s:g} s")


@contextmanager
def locked(folder: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[int]:
    """Give a descriptor on `folder`, under an exclusive flock(2) on the folder itself.

    The folder needs no lock file: flock(2) takes any open file, a directory included (Linux and macOS).

    Raises:
        Locked: not within `timeout_s`. OSError: the folder cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor, timeout_s)
        yield descriptor
    finally:
        os.close(descriptor)  # releases the lock: nobody else shares this descriptor


def replace_at(folder: int, name: str, data: bytes, *, mode: int = 0o600) -> None:
    """Write file `name` in the open `folder`: a new file, made durable, renamed over, the folder made durable.

    The caller holds the lock of the folder's tree, so that the temporary name is free for one writer; what an
    earlier crash left there is removed.

    Raises:
        OSError: nothing has changed then, but perhaps a temporary file that could not be removed.
    """
    _remove(folder, TEMPORARY)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(TEMPORARY, flags, mode, dir_fd=folder)
    try:
        if hasattr(
            os, "fchmod"
        ):  # the mode at birth is cut by the umask; the one that was asked for is meant
            os.fchmod(descriptor, mode)
        _write(descriptor, data)
        os.fsync(descriptor)
        os.rename(TEMPORARY, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _remove(folder, TEMPORARY)
        raise
    finally:
        os.close(descriptor)
    os.fsync(folder)


def _lock(descriptor: int, timeout_s: float) -> None:
    import fcntl  # here, since Windows has none, and validates and renders all the same

    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                raise Locked(timeout_s) from None
            time.sleep(
                _POLL_S
            )  # flock(2) has no time limit of its own, and an agent could hold its own folder


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass  # the usual case
