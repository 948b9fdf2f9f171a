"""A state directory, judged before anything is written into it, and the lock that makes one engine its owner."""

import fcntl
import json
import os
import stat
from pathlib import Path
from typing import Any

from kt_ledger.durable import replace_file
from kt_ledger.layout import StateLayout


class StateDirUnusable(Exception):
    """The state directory cannot be used; the message says what it is and what was wanted."""


class EngineRuns(Exception):
    """Another engine owns this state directory."""


def prepare(root: Path) -> None:
    """Make the directory where its parent is there, and have it private: 0700 and ours.

    Raises:
        StateDirUnusable: it is no directory, not ours (nor the link that leads to it), or cannot be written.
    """
    try:
        if not root.exists() and not root.is_symlink():
            root.mkdir(mode=0o700)
        for status in (root.lstat(), root.stat()):
            if status.st_uid not in (os.geteuid(), *([0] if stat.S_ISLNK(status.st_mode) else [])):
                raise _unusable(root, f"one that belongs to the user with id {status.st_uid}")
        if not root.is_dir():
            raise _unusable(root, "something that is no directory")
        if stat.S_IMODE(root.stat().st_mode) & 0o077:
            root.chmod(0o700)
        if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
            raise _unusable(root, "one that cannot be written to")
    except OSError as error:
        raise _unusable(root, error.strerror or str(error)) from error


def take_lock(files: StateLayout, *, waits: bool = False) -> int:
    """Return the descriptor that holds the engine's lock for as long as it is open.

    `waits`: for as long as somebody else has it; a service that ended at once would be started again for ever.

    Raises:
        EngineRuns: somebody else has it. StateDirUnusable: the lock cannot be made.
    """
    try:
        lock = os.open(files.engine_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(files.root, error.strerror or str(error)) from error
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise _unusable(files.root, f"an {files.engine_lock.name} that is no file")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError as error:
        os.close(lock)
        raise EngineRuns(f"an engine already serves {files.root}: {_whose(files)}") from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)  # for those who lose against us; the lock itself is what counts
    return lock


def is_ours(files: StateLayout, lock: int) -> bool:
    """Tell whether the lock that we hold is still the directory's: a removed directory has no engine."""
    try:
        return os.path.samestat(os.fstat(lock), files.engine_lock.stat())
    except OSError:
        return False


def mark_stopped(files: StateLayout) -> None:
    """Leave the marker that keeps keepers quiet."""
    replace_file(files.engine_stopped, b"stopped on purpose; the next command starts the engine again\n")


def write_record(files: StateLayout, record: dict[str, Any]) -> None:
    """Write who the engine is."""
    replace_file(files.engine_record, json.dumps(record).encode())


def is_held(lock: Path) -> bool | None:
    """Tell whether any process holds the flock at `lock`; None where there is no such file.

    Nothing is kept: a moment's shared lock is taken and given back.
    """
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _whose(files: StateLayout) -> str:
    try:
        return f"process {int(files.engine_lock.read_bytes())}"
    except (OSError, ValueError):
        return "a process that has only just begun"


def _unusable(root: Path, got: str) -> StateDirUnusable:
    return StateDirUnusable(
        f"cannot use the state directory {root}: got {got}, wanted a writable directory of our own; "
        "correct it, or set KTESIO_STATE_DIR to another"
    )
