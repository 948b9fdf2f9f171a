"""An agent whose keeper was killed: found again, watched, and its end learnt, although it is no child of ours.

Its processes are the agent's descendants, session and cgroup, and whoever carries the Run in its environment; once seen
they stay known by pid and start ticks. Its pipes are inherited from whoever held the spare read ends; where nobody did,
they are opened again through /proc (proc_pid_fd(5)), with all that is still in them.
"""

import fcntl
import json
import os
import stat
import struct
from collections.abc import Callable

from kt_supervisor.keeper import cgroup, loop, places, proctree, records, system
from kt_supervisor.keeper.specification import Specification, Takeover

MARK = "KT_RUN"
"""The variable by which every process of a Run names it; the engine sets it."""

_LOOK_S = 0.02
_LOOKS = 50
_GET_INFO = 0xC040FF0B  # PIDFD_GET_INFO of 64 bytes, Linux 6.13; with exit status since 6.15 (pidfd.h)
_INFO_EXIT = 1 << 3
_INFO = struct.Struct("<Q52xi")
_STREAMS = {"out": 1, "err": 2}


class Orphans:
    """The processes of an agent that belong to init now."""

    def __init__(
        self, takeover: Takeover, mark: str | None, *, leaf: cgroup.Leaf | None, apart: set[int]
    ) -> None:
        self._agent = (takeover.agent_pid, takeover.agent_start_ticks)
        self._mark = None if mark is None else f"{MARK}={mark}".encode()
        self._leaf = leaf
        self._apart = apart
        self._known = {self._agent}
        self._strangers: set[tuple[int, int]] = set()

    def members(self) -> list[proctree.Process]:
        """Return all of them, zombies included."""
        everybody = proctree.everybody()
        kept = {process.pid for process in proctree.below([*self._apart], everybody)} | self._apart
        kept.add(os.getpid())
        others = [process for process in everybody if process.pid not in kept]
        seeds = self._seeds(others)
        found = {
            process.pid: process for process in [*seeds, *proctree.below([p.pid for p in seeds], others)]
        }
        self._known = {(process.pid, process.start_ticks) for process in found.values()} | {self._agent}
        return list(found.values())

    def _seeds(self, among: list[proctree.Process]) -> list[proctree.Process]:
        session, born = self._agent
        inside = set(self._leaf.members()) if self._leaf is not None else set()
        # The number of a session is not given to a new process while the session lives (setsid(2)).
        taken = any(process.pid == session and process.start_ticks != born for process in among)
        self._strangers &= {(process.pid, process.start_ticks) for process in among}
        return [
            process
            for process in among
            if (process.pid, process.start_ticks) in self._known
            or process.pid in inside
            or (process.session == session and not taken and process.start_ticks >= born)
            or (process.start_ticks >= born and self._carries(process))
        ]

    def _carries(self, process: proctree.Process) -> bool:
        key = (process.pid, process.start_ticks)
        if self._mark is None or key in self._strangers:
            return False
        environment = cgroup.read(f"/proc/{process.pid}/environ")
        if self._mark in environment.split(b"\0"):
            return True
        if environment:
            self._strangers.add(key)  # a stranger stays one; an empty answer may be an exec under way
        return False


class Watch:
    """Waits for the end of the agent by its pidfd and learns how it ended, as far as the kernel tells."""

    def __init__(
        self, events: loop.Loop, takeover: Takeover, *, gone: Callable[[int | None, str | None], None]
    ) -> None:
        """`gone(wait status, None)` or `gone(None, why it is unknown)` is called once."""
        self._loop = events
        self._takeover = takeover
        self._gone = gone
        self._looks = 0
        self._handle = _handle(takeover)
        if self._handle is None:
            events.after(0, self._unseen)
        else:
            events.watch(self._handle, self._ended)

    def _unseen(self) -> None:
        status = _status_of_zombie(self._takeover)
        why = "the agent had ended before its new keeper could look, and nobody held a pidfd of it"
        self._gone(status, None if status is not None else why)

    def _ended(self, _events: int) -> None:
        assert self._handle is not None
        self._loop.unwatch(self._handle)
        self._learn()

    def _learn(self) -> None:
        # Until init has reaped it, /proc knows the status; afterwards the pidfd does.
        assert self._handle is not None
        status = _status_by_pidfd(self._handle)
        if status is None:
            status = _status_of_zombie(self._takeover)
        self._looks += 1
        if status is None and self._looks < _LOOKS:
            self._loop.after(_LOOK_S, self._learn)
            return
        os.close(self._handle)
        why = "its keeper was killed, and this kernel does not tell the exit status of another's child"
        self._gone(status, None if status is not None else why)


def recorded() -> dict[str, object]:
    """Return the `run.json` that the dead keeper left; empty where there is none."""
    try:
        found = json.loads(cgroup.read(places.RUN))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def keeper_lives(record: dict[str, object]) -> bool:
    """Return whether the keeper that the record names is still there."""
    pid = record.get("keeper_pid")
    process = proctree.read(pid) if isinstance(pid, int) else None
    return process is not None and process.start_ticks == record.get("keeper_start_ticks") and process.alive()


def leaf_of(record: dict[str, object]) -> cgroup.Leaf | None:
    """Return the agent's cgroup, if it had one that is still there."""
    path = record.get("cgroup")
    return cgroup.Leaf(path) if isinstance(path, str) and os.path.exists(f"{path}/cgroup.procs") else None


def pipes(
    spec: Specification, record: dict[str, object], members: list[proctree.Process]
) -> tuple[dict[str, int | None], list[str]]:
    """Return a read end for each stream, None where there is none any more, and what may be missing because of it."""
    assert spec.takeover is not None
    given = {"out": spec.takeover.out, "err": spec.takeover.err}
    wanted = record.get("pipes")
    found: dict[str, int | None] = {}
    gaps: list[str] = []
    for name in _STREAMS:
        descriptor = given[name]
        if descriptor is not None and _is_pipe(descriptor):
            found[name] = descriptor
            continue
        inode = wanted.get(name) if isinstance(wanted, dict) else None
        found[name] = _opened_again(name, inode, members)
        if found[name] is None:
            gaps.append(f"{name}: nobody held the pipe; what the agent wrote since its keeper died is lost")
        else:
            gaps.append(f"{name}: nobody read between two keepers; a write in between failed with EPIPE")
    return found, gaps


def beginning(out: int, err: int, *, leaf: cgroup.Leaf | None, limits: dict[str, str]) -> dict[str, object]:
    """Return what `run.json` says of a new agent beside who it is: all that a later keeper needs."""
    return {
        "started_at_ns": loop.wall_ns(),
        "limits": limits,
        "cgroup": None if leaf is None else leaf.path,
        # By these numbers the pipes are found again.
        "pipes": {"out": os.fstat(out).st_ino, "err": os.fstat(err).st_ino},
        "takeovers": 0,
    }


def continued(record: dict[str, object], spec: Specification, takeover: Takeover) -> dict[str, object]:
    """Return the `run.json` of a Run that has a new keeper."""
    before = record.get("takeovers")
    return {
        "started_at_ns": loop.wall_ns(),
        "limits": {},
        "cgroup": None,
        **record,
        **records.identity(spec.run_id, spec.instance_id, takeover.agent_pid),
        "agent_start_ticks": takeover.agent_start_ticks,
        "takeovers": (before if isinstance(before, int) else 0) + 1,
    }


def _opened_again(name: str, inode: object, members: list[proctree.Process]) -> int | None:
    for process in members:
        folder = f"/proc/{process.pid}/fd"
        try:
            places_in = os.listdir(folder) if isinstance(inode, int) else [str(_STREAMS[name])]
        except OSError:
            continue
        for place in places_in:
            descriptor = _reader(f"{folder}/{place}", inode)
            if descriptor is not None:
                return descriptor
    return None


def _reader(path: str, inode: object) -> int | None:
    try:
        there = os.stat(path)
        if not stat.S_ISFIFO(there.st_mode) or (isinstance(inode, int) and there.st_ino != inode):
            return None
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None


def _is_pipe(descriptor: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _handle(takeover: Takeover) -> int | None:
    if takeover.pidfd is not None:
        return takeover.pidfd
    if not system.LINUX:
        return None
    try:
        handle = os.pidfd_open(takeover.agent_pid)
    except OSError:
        return None
    if proctree.start_ticks(takeover.agent_pid) != takeover.agent_start_ticks:
        os.close(handle)
        return None
    return handle


def _status_by_pidfd(handle: int) -> int | None:
    asked = bytearray(_INFO.pack(_INFO_EXIT, 0))
    try:
        fcntl.ioctl(handle, _GET_INFO, asked)
    except OSError:
        return None  # an older kernel, or not reaped yet
    mask, status = _INFO.unpack(asked)
    return int(status) if mask & _INFO_EXIT else None


def _status_of_zombie(takeover: Takeover) -> int | None:
    process = proctree.read(takeover.agent_pid)
    if process is None or process.start_ticks != takeover.agent_start_ticks or process.state != b"Z":
        return None
    return process.exit_status
