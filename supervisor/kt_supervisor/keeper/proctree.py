"""The agent's tree: who descends from us, and signals that reach only those.

The keeper is a subreaper, so whoever the agent started, however it left its group, session or parent, has the keeper
for an ancestor. A pid is opened (pidfd), then verified by its kernel start ticks, then used: a reused number is never
hit. Without /proc only the agent's own group is known.
"""

import os
import signal
from collections.abc import Callable

from kt_supervisor.keeper import cgroup, system

_SCANS = 2
_SCANS_OF_STRANGERS = 6
"""A fork chain can slip through a scan, and init reaps what would betray it; through so many in a row, hardly."""

_GROUP_FLAG = 4  # PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9 (pidfd_send_signal(2))


class Process:
    """One line of /proc/PID/stat (proc_pid_stat(5)); `start_ticks` since boot, `exit_status` a zombie's."""

    __slots__ = ("exit_status", "group", "parent", "pid", "session", "start_ticks", "state", "threads")

    def __init__(self, pid: int, stat: bytes) -> None:
        # The command name may hold spaces and parentheses: everything of interest follows the last one.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.threads = int(fields[17])
        self.start_ticks = int(fields[19])
        self.exit_status = int(fields[49]) if len(fields) > 49 else 0

    def alive(self) -> bool:
        """Return whether it can still run; a zombie cannot, unless other threads outlive its first."""
        return self.state not in (b"Z", b"X", b"x") or self.threads > 1

    def stopped(self) -> bool:
        """Return whether a signal or a tracer has stopped it."""
        return self.state in (b"T", b"t")


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


def everybody() -> list[Process]:
    """Return every process of the machine, zombies included; empty without /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    found = (read(int(name)) for name in names if name.isdigit())
    return [process for process in found if process is not None]


def descendants(of_pid: int, *, apart: frozenset[int] | set[int] = frozenset()) -> list[Process]:
    """Return every living process below `of_pid`, parents before children, without those in `apart` and below.

    One scan can miss what is forked meanwhile. A chain of processes that fork and exit can be missed again and again;
    what betrays it are its zombies, which stay as long as nobody reaps.
    """
    return [process for process in below([of_pid], everybody(), apart=apart) if process.alive()]


def below(
    pids: list[int], among: list[Process], *, apart: frozenset[int] | set[int] = frozenset()
) -> list[Process]:
    """Return those of `among` that descend from `pids`, parents before children."""
    children: dict[int, list[Process]] = {}
    for process in among:
        if process.pid not in apart:
            children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    level = pids
    while level:
        lower = [child for pid in level for child in children.pop(pid, ())]
        found += lower
        level = [child.pid for child in lower]
    return found


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
    """The agent's processes: finds, signals and reaps them. `group` is the agent's process group, once it has one.

    `leaf` is their cgroup, where they have one of their own. `apart` are children of the keeper that are none of them.
    """

    def __init__(self) -> None:
        self.group: int | None = None
        self.find: Callable[[], list[Process]] = lambda: below([os.getpid()], everybody(), apart=self.apart)
        """How its processes are found, zombies included."""

        self.leaf: cgroup.Leaf | None = None
        self.apart: set[int] = set()
        self.statuses: dict[int, int] = {}
        self.told = system.LINUX
        """Whether SIGCHLD tells of every end; else somebody has to look."""

    def members(self) -> list[Process]:
        """Return all that lives."""
        return [process for process in self.find() if process.alive()]

    def reap(self, wanted: int | None) -> list[int]:
        """Collect every ended child and return their pids; keeps the wait status of `wanted` in `statuses`."""
        reaped: list[int] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return reaped
            if not pid:
                return reaped
            reaped.append(pid)
            if pid == wanted:
                self.statuses[pid] = status

    def empty(self) -> bool:
        """Return whether nothing is left, exactly: every descendant of a subreaper hangs below a child of it."""
        if not system.LINUX:
            return not self._group_lives()
        try:
            # An end that was not reaped yet is looked at after its SIGCHLD.
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) or not self.apart:
                return False
        except ChildProcessError:
            pass
        if self.leaf is not None and self.leaf.populated():
            return False
        return not any(self.members() for _ in range(_SCANS if self.told else _SCANS_OF_STRANGERS))

    def living(self) -> list[int]:
        """Return the pids of all that lives."""
        if not system.LINUX:
            return [self.group] if self.group and self._group_lives() else []
        pids = [process.pid for process in self.members()]
        return sorted({*pids, *(self.leaf.members() if self.leaf else ())})

    def signal(self, *numbers: int) -> bool:
        """Send these signals in turn: to each group once, and to everybody outside those groups.

        Returns:
            Whether anybody was reached.
        """
        if not system.LINUX:
            return all(self._signal_group(number) for number in numbers)
        found = self.members()
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
        """Kill the cgroup, then whole groups, both atomic against forks, then each one; True if anybody was there."""
        if not system.LINUX:
            return self._signal_group(signal.SIGKILL)
        in_leaf = self.leaf is not None and self.leaf.populated() and self.leaf.kill()
        found = self.members()
        done: set[int] = set()
        for process in found:
            if process.group not in done and send(process, signal.SIGKILL, to_group=True):
                done.add(process.group)
        for process in found:
            send(process, signal.SIGKILL)
        return bool(found) or in_leaf

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
