"""What agents use of the machine at this moment: the one file of this room that asks psutil.

Laws: looked at only when somebody asks; the whole tree counts, whoever left its group or session included; what cannot
be known is None with a reason, never 0; a root counts only where its kernel start ticks are those that were recorded.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil  # type: ignore[import-untyped]

from kt_ledger import process_identity
from kt_supervisor.keeper import proctree, system

SHORTEST_WINDOW_S = 0.5
"""The kernel counts in ticks of 10 ms (times(2)): a shorter window would say little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Below whom a Run's processes are: the keeper, which adopts what loses its parent, and the agent itself."""

    run_id: str
    boot_id: str | None
    keeper: tuple[int | None, int | None]
    agent: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one agent's tree uses; `unknown` says why a field is None.

    `memory_bytes` is the sum of resident sets (RSS): what processes share counts once for each. `pss_bytes` shares it
    out, and is looked at on request only, since it is dear. `cpu_percent` is of one core, over `cpu_window_s`.
    """

    processes: int | None = None
    cpu_percent: float | None = None
    cpu_window_s: float | None = None
    memory_bytes: int | None = None
    pss_bytes: int | None = None
    descriptors: int | None = None
    unknown: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Sum:
    cpu_s: float = 0.0
    memory_bytes: int = 0
    pss_bytes: int = 0
    descriptors: int = 0
    processes: int = 0
    unknown: dict[str, str] = field(default_factory=dict)


class Sampler:
    """Remembers the last look at each Run, so that the next one can tell what happened since."""

    def __init__(self) -> None:
        self._anchors: dict[str, tuple[float, float]] = {}  # run -> (when, CPU seconds by then)
        self._last: dict[str, tuple[float, float]] = {}  # run -> (percent, window)

    def sample(self, runs: Sequence[Roots], *, with_pss: bool = False) -> dict[str, Usage]:
        """Return what each Run uses, by its id."""
        if not system.LINUX:
            return {run.run_id: _nothing("processes cannot be identified on this system") for run in runs}
        processes = _all_processes()
        boot_id = process_identity.boot_id()
        return {run.run_id: self._one(run, processes, boot_id, with_pss=with_pss) for run in runs}

    def forget_all_but(self, run_ids: set[str]) -> None:
        """Forget Runs that are over."""
        for remembered in (self._anchors, self._last):
            for run_id in set(remembered) - run_ids:
                del remembered[run_id]

    def _one(self, run: Roots, processes: "_Processes", boot_id: str | None, *, with_pss: bool) -> Usage:
        if run.boot_id != boot_id:
            return _nothing("the machine was restarted since")
        agent, keeper = processes.identified(*run.agent), processes.identified(*run.keeper)
        if agent is None and keeper is None:
            return _nothing("neither its process nor its keeper can be identified")
        members = processes.below([process.pid for process in (keeper, agent) if process])
        if agent is not None:
            members.setdefault(agent.pid, agent)
        found = _Sum()
        for member in members.values():
            _add(found, member, with_pss=with_pss)
        if keeper is not None:
            found.cpu_s += _of_ended_children(keeper)
        if not found.processes:
            return _nothing("nothing of it lives any more")
        percent, window_s = self._cpu(run.run_id, found.cpu_s, agent or keeper)
        return Usage(
            processes=found.processes,
            cpu_percent=None if "cpu" in found.unknown else percent,
            cpu_window_s=None if "cpu" in found.unknown else window_s,
            memory_bytes=None if "memory" in found.unknown else found.memory_bytes,
            pss_bytes=found.pss_bytes if with_pss and "pss" not in found.unknown else None,
            descriptors=None if "descriptors" in found.unknown else found.descriptors,
            unknown=found.unknown,
        )

    def _cpu(self, run_id: str, cpu_s: float, oldest: proctree.Process | None) -> tuple[float, float]:
        """Return percent and window: since the last look, or, at the first one, since the start."""
        assert oldest is not None
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        born_s = oldest.start_ticks / os.sysconf("SC_CLK_TCK")
        since_s, before_s = self._anchors.get(run_id, (born_s, 0.0))
        if now_s - since_s < SHORTEST_WINDOW_S and run_id in self._last:
            return self._last[run_id]
        # Where SIGCHLD is ignored, ended children are counted nowhere (times(2)): the sum may go back.
        window_s = max(now_s - since_s, 0.01)
        self._last[run_id] = (round(max(cpu_s - before_s, 0.0) / window_s * 100, 1), round(window_s, 1))
        self._anchors[run_id] = (now_s, cpu_s)
        return self._last[run_id]


class _Processes:
    """One scan of /proc, for all agents together."""

    def __init__(self, found: list[proctree.Process]) -> None:
        self._by_pid = {process.pid: process for process in found}
        self._children: dict[int, list[proctree.Process]] = {}
        for process in found:
            self._children.setdefault(process.parent, []).append(process)

    def identified(self, pid: int | None, start_ticks: int | None) -> proctree.Process | None:
        """Return the living process that was recorded, and no other of its number."""
        process = self._by_pid.get(pid or 0)
        same = process is not None and process.start_ticks == start_ticks and process.alive()
        return process if same else None

    def below(self, roots: list[int]) -> dict[int, proctree.Process]:
        """Return the living descendants of some processes."""
        found: dict[int, proctree.Process] = {}
        level = roots
        while level:
            fresh = [
                child for pid in level for child in self._children.get(pid, ()) if child.pid not in found
            ]
            found |= {child.pid: child for child in fresh}
            level = [child.pid for child in fresh]
        return {pid: process for pid, process in found.items() if process.alive()}


def _all_processes() -> _Processes:
    read = (proctree.read(int(name)) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208 - names only
    return _Processes([process for process in read if process is not None])


def _add(found: _Sum, member: proctree.Process, *, with_pss: bool) -> None:
    try:
        process = psutil.Process(member.pid)
        with process.oneshot():
            times, resident = process.cpu_times(), process.memory_info().rss
        again = proctree.read(member.pid)
    except psutil.NoSuchProcess:
        return  # it ended between two looks
    except psutil.AccessDenied:
        found.processes += 1
        found.unknown |= {"cpu": "one of its processes may not be looked at"}
        found.unknown |= {"memory": "one of its processes may not be looked at"}
        return
    if again is None or again.start_ticks != member.start_ticks:
        return  # another process has its number now
    found.processes += 1
    found.cpu_s += times.user + times.system + times.children_user + times.children_system
    found.memory_bytes += resident
    try:
        found.descriptors += process.num_fds()
    except psutil.NoSuchProcess:
        return
    except psutil.AccessDenied:
        found.unknown["descriptors"] = "one of its processes does not let its descriptors be counted"
    if with_pss:
        _add_pss(found, process)


def _add_pss(found: _Sum, process: Any) -> None:
    try:
        found.pss_bytes += process.memory_full_info().pss
    except psutil.NoSuchProcess:
        return
    except (psutil.AccessDenied, OSError, AttributeError):
        found.unknown["pss"] = "one of its processes does not let its pages be looked at"


def _of_ended_children(keeper: proctree.Process) -> float:
    try:
        times = psutil.Process(keeper.pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.children_user + times.children_system)


def _nothing(why: str) -> Usage:
    return Usage(unknown=dict.fromkeys(("processes", "cpu", "memory", "descriptors"), why))
