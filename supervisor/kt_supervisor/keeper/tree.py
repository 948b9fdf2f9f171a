"""Process trees: who descends from whom, and signals that reach the process that was meant.

Identity is pid plus kernel start ticks (`/proc/PID/stat` field 22, proc_pid_stat(5)); a signal goes through a pidfd
whose ticks were compared after it was opened, so a reused pid is never hit. Elsewhere than on Linux `ps` names the
tree and a plain kill reaches it: best effort, as the documentation says.
"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LINUX = sys.platform == "linux"
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Process:
    """One process at the moment of a look: `ticks` is its start in kernel clock ticks since boot."""

    pid: int
    parent: int
    state: str
    ticks: int


def boot_id() -> str:
    """Return what identifies this boot of the machine; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def look(pid: int) -> Process | None:
    """Return the process of this number, or None where there is none (or it is not to be seen)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            text = stat.read()
    except OSError:
        return None
    # The command name may hold spaces and parentheses: what counts stands behind the last one.
    words = text[text.rfind(b")") + 2 :].split()
    return Process(pid, int(words[1]), words[0].decode("ascii"), int(words[19]))


def start_ticks(pid: int) -> int:
    """Return a process's start in ticks since boot; 0 where it cannot be read."""
    found = look(pid)
    return found.ticks if found else 0


def descendants(root: int, *, apart_from: Iterable[int] = ()) -> list[Process]:
    """Return the living processes below `root`, parents before children, without the subtrees of `apart_from`."""
    children: dict[int, list[Process]] = {}
    for process in _everything():
        children.setdefault(process.parent, []).append(process)
    left_out = set(apart_from)
    found: list[Process] = []
    heads = [root]
    while heads:
        for process in children.get(heads.pop(0), ()):
            if process.pid in left_out:
                continue
            heads.append(process.pid)
            if process.state not in "ZX":
                found.append(process)
    return found


def carrying(variable: str, *, apart_from: Iterable[int] = ()) -> list[Process]:
    """Return the living processes of ours that were started with `variable` (NAME=VALUE) in their environment."""
    if not LINUX:
        return []
    wanted = variable.encode()
    left_out = {os.getpid(), *apart_from}
    found = []
    for pid in _pids():
        if pid in left_out:
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                carries = wanted in environ.read().split(b"\0")
        except OSError:
            continue
        process = look(pid) if carries else None
        if process and process.state not in "ZX":
            found.append(process)
    return found


def send(process: Process, number: int) -> bool:
    """Send a signal to exactly this process; return whether it was there."""
    if not hasattr(os, "pidfd_open"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
            return True
        return False
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if start_ticks(process.pid) != process.ticks:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def become_subreaper(wanted: bool = True) -> None:
    """Let orphans of our tree become our children (Linux; nothing elsewhere). prctl(2)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(wanted))


def hide_from_siblings() -> None:
    """Keep other processes of this user out of our memory and environment. prctl(2), PR_SET_DUMPABLE."""
    _prctl(_PR_SET_DUMPABLE, 0)


_LIBC = ctypes.CDLL(None, use_errno=True) if LINUX else None


def _prctl(option: int, value: int) -> None:
    if _LIBC is not None:
        _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _everything() -> list[Process]:
    if not LINUX:
        return _everything_by_ps()
    return [process for pid in _pids() if (process := look(pid))]


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]


def _everything_by_ps() -> list[Process]:
    with os.popen("ps -axo pid=,ppid=,state=") as listing:
        rows = [line.split() for line in listing]
    return [Process(int(row[0]), int(row[1]), row[2][:1], 0) for row in rows if len(row) >= 3]
