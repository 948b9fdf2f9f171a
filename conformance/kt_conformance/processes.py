"""What the system itself says of processes: the kit's own eyes, so that the engine is no witness in its own cause.

Linux only (proc(5)); elsewhere `visible()` is False, and sections that need it say so. A process is known by its pid
and its start, since pids come again.
"""

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
STOPPED = "T"
"""State of a process that a signal has stopped; a frozen cgroup is looked at apart (cgroup.events)."""
_GONE = ("Z", "X", "x")


@dataclass(frozen=True, slots=True)
class Process:
    """A process at one moment: `ticks` is the processor time that it has used."""

    pid: int
    parent: int
    start: int
    state: str
    ticks: int

    @property
    def alive(self) -> bool:
        """Whether it is there, and not only waiting to be collected."""
        return self.state not in _GONE


def visible() -> bool:
    """Return whether this system shows what the kit needs to see."""
    return (PROC / "self" / "stat").exists()


def read(pid: int) -> Process | None:
    """Return a process, or None where there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = text.rpartition(") ")[2].split()
    # proc_pid_stat(5), counted from field 3: state, ppid, ..., utime (14), stime (15), ..., starttime (22)
    return Process(pid, int(fields[1]), int(fields[19]), fields[0], int(fields[11]) + int(fields[12]))


def same(process: Process) -> Process | None:
    """Return what that very process is now, or None where it has ended."""
    now = read(process.pid)
    return now if now is not None and now.start == process.start and now.alive else None


def everyone() -> list[Process]:
    """Return all processes that are alive."""
    pids = [int(name) for name in os.listdir(PROC) if name.isdecimal()]  # noqa: PTH208 (a thousand names, no paths)
    return [process for pid in pids if (process := read(pid)) is not None and process.alive]


def descendants(root: int) -> list[Process]:
    """Return what descends from a process, without it."""
    by_parent: dict[int, list[Process]] = {}
    for process in everyone():
        by_parent.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = list(by_parent.get(root, ()))
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += by_parent.get(process.pid, ())
    return found


def marked(mark: str) -> list[Process]:
    """Return the processes whose first environment has the entry `mark` (`NAME=value`), where that can be seen."""
    return [process for process in everyone() if mark in _entries(process.pid, "environ")]


def environment(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty where that is not ours to see."""
    pairs = [entry.partition("=") for entry in _entries(pid, "environ")]
    return {name: value for name, equals, value in pairs if equals}


def arguments(pid: int) -> list[str]:
    """Return the command line of a process; empty where that is not ours to see."""
    return _entries(pid, "cmdline")


def standing(process: Process) -> bool:
    """Return whether a process stands still: stopped by a signal, in a frozen cgroup, or gone."""
    now = same(process)
    return now is None or now.state.upper() == STOPPED or _is_frozen(process.pid)


def _is_frozen(pid: int) -> bool:
    """Cgroups version 2: cgroups(7), "cgroup.events"; there may be several places where they are mounted."""
    try:
        lines = (PROC / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return False
    inside = next((line[3:] for line in lines if line.startswith("0::")), "")
    return any(_says_frozen(mount / inside.lstrip("/") / "cgroup.events") for mount in _cgroup_mounts())


def _says_frozen(events: Path) -> bool:
    try:
        return "frozen 1" in events.read_text().splitlines()
    except OSError:
        return False


def _cgroup_mounts() -> list[Path]:
    fields = [line.split() for line in (PROC / "self" / "mounts").read_text().splitlines()]
    return [Path(place) for _, place, kind, *_ in fields if kind == "cgroup2"]


def _entries(pid: int, name: str) -> list[str]:
    try:
        content = (PROC / str(pid) / name).read_bytes()
    except OSError:
        return []
    return [os.fsdecode(entry) for entry in content.split(b"\0")[:-1]]
