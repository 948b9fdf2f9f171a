"""The agent's tree: who descends from us, and signals that reach only those.

The keeper is a subreaper, so whoever the agent started, however it left its group, session or parent, has the keeper
for an ancestor. A pid is opened (pidfd), then verified by its kernel start ticks, then used: a reused number is never
hit. Without /proc only the agent's own group is known.
"""

import os
import signal

from kt_supervisor.keeper import system

_GROUP_FLAG = 4  # PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9 (pidfd_send_signal(2))


class Process:
    """One line of /proc/PID/stat (proc_pid_stat(5)); `start_ticks` since boot."""

    __slots__ = ("group", "parent", "pid", "start_ticks", "state", "threads")

    def __init__(self, pid: int, stat: bytes) -> None:
        # The command name may hold spaces and parentheses: everything of interest follows the last one.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.threads = int(fields[17])
        self.start_ticks = int(fields[19])

    def alive(self) -> bool:
        """Return whether it can still run; a zombie cannot, unless other threads outlive its first."""
        return self.state not in (b"Z", b"X", b"x") or self.threads > 1


def read(pid: int) -> Process | None:
    """Return the process `pid` as it is now, or None."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            return Process(pid, os.read(descriptor, 4096))
        finally:
            os.close(descriptor)
    except (OSError, ValueError, IndexError):
        return None


def start_ticks(pid: int) -> int:
    """Return the kernel's start time of `pid` in ticks since boot; 0 where unknown."""
    process = read(pid)
    return process.start_ticks if process else 0


def descendants(of_pid: int) -> list[Process]:
    """Return every living process below `of_pid`, parents before children.

    One scan can miss a process that changes parents meanwhile; two empty scans in a row cannot both.
    """
    children: dict[int, list[Process]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        process = read(int(name)) if name.isdigit() else None
        if process is not None:
            children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    level = [of_pid]
    while level:
        below = [child for pid in level for child in children.pop(pid, ())]
        found += below
        level = [child.pid for child in below]
    return [process for process in found if process.alive()]


def send(process: Process, number: int, *, to_group: bool = False) -> bool:
    """Send a signal to a process found by `descendants`, or to its whole group.

    Returns:
        False if it is gone, was replaced by another of that pid, or may not be signalled (another user's).
    """
    if to_group and process.group == os.getpgrp():
        return False
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = read(process.pid)
        if now is None or now.start_ticks != process.start_ticks:
            return False
        if to_group:
            return _send_to_group(handle, now.group, number)
        signal.pidfd_send_signal(handle, number)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _send_to_group(handle: int, group: int, number: int) -> bool:
    if group == os.getpgrp():
        return False
    try:
        signal.pidfd_send_signal(handle, number, None, _GROUP_FLAG)
    except OSError:
        os.killpg(group, number)
    return True


class Tree:
    """Everything below the keeper: signals and reaps it. `group` is the agent's process group, once it has one."""

    def __init__(self) -> None:
        self.group: int | None = None
        self.statuses: dict[int, int] = {}

    def reap(self, wanted: int | None) -> None:
        """Collect every ended child; keeps the wait status of `wanted` in `statuses`."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == wanted:
                self.statuses[pid] = status

    def empty(self) -> bool:
        """Return whether nothing is left, exactly: every descendant of a subreaper hangs below a child of it."""
        if not system.LINUX:
            return not self._group_lives()
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return not descendants(os.getpid()) and not descendants(os.getpid())
        return False

    def living(self) -> list[int]:
        """Return the pids of all that lives below us."""
        if not system.LINUX:
            return [self.group] if self.group and self._group_lives() else []
        return [process.pid for process in descendants(os.getpid())]

    def signal(self, *numbers: int) -> bool:
        """Send these signals in turn: to each group once, and to everybody outside those groups.

        Returns:
            Whether anybody was reached.
        """
        if not system.LINUX:
            return all(self._signal_group(number) for number in numbers)
        found = descendants(os.getpid())
        reached = False
        for number in numbers:
            done: set[int] = set()
            for process in found:
                if process.group == self.group:
                    # One member may be gone by now: the next one stands for the group.
                    if process.group not in done and send(process, number, to_group=True):
                        done.add(process.group)
                        reached = True
                else:
                    reached |= send(process, number)
        return reached

    def kill(self) -> bool:
        """Kill whole groups first, since that is atomic against forks, then each one; True if anybody was there."""
        if not system.LINUX:
            return self._signal_group(signal.SIGKILL)
        found = descendants(os.getpid())
        done: set[int] = set()
        for process in found:
            if process.group not in done and send(process, signal.SIGKILL, to_group=True):
                done.add(process.group)
        for process in found:
            send(process, signal.SIGKILL)
        return bool(found)

    def _group_lives(self) -> bool:
        return self._signal_group(0)

    def _signal_group(self, number: int) -> bool:
        if self.group is None or self.group == os.getpgrp():
            return False
        try:
            os.killpg(self.group, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
