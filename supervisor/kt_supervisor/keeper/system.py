"""The few things the standard library cannot say to Linux; each degrades to a plain answer elsewhere."""

import ctypes
import os
import sys

LINUX = sys.platform == "linux"

_PR_SET_DUMPABLE = 4  # prctl(2)
_PR_SET_CHILD_SUBREAPER = 36
_SYNC_FILE_RANGE_WRITE = 2
_CLONE_PARENT = 0x8000  # clone(2)
_SIGCHLD = 17
_SYS_CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220}

# PyDLL keeps the interpreter lock over the call: the child of `fork_sibling` comes back holding it.
_libc = ctypes.PyDLL(None, use_errno=True) if LINUX else None


def become_subreaper(on: bool) -> bool:
    """Make orphaned descendants our children (prctl(2), Linux 3.4); False where that cannot be."""
    return _libc is not None and _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) == 0


def start_writing(descriptor: int) -> None:
    """Let the kernel begin to write a file's pages to disk, and do not wait (sync_file_range(2)); best effort."""
    if _libc is not None:
        nothing = ctypes.c_longlong(0)  # from the beginning to the end
        _libc.sync_file_range(descriptor, nothing, nothing, _SYNC_FILE_RANGE_WRITE)


def hide_memory() -> None:
    """Keep other processes of this user from reading our memory and environment, best effort."""
    if _libc is not None:
        _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def fork_sibling() -> int | None:
    """Fork a child of our parent: it is no descendant of ours, and our tree stays the agent's alone.

    Only for a process with one thread, and only to exec at once: it skips the C library's own fork.

    Returns:
        0 in the new process, its pid in the old one, None where the kernel cannot.
    """
    number = _SYS_CLONE.get(os.uname().machine)
    if _libc is None or number is None:
        return None
    pid = _libc.syscall(ctypes.c_long(number), ctypes.c_ulong(_CLONE_PARENT | _SIGCHLD), 0, 0, 0, 0)
    return None if pid < 0 else int(pid)
