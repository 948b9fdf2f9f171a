"""Who asks: somebody from outside, or a process of an agent that is managed here. Reads /proc; changes nothing.

A guard against accidents and confused agents, not against malice: an agent runs under our own uid, and whoever does can
do to our processes and files what the operator can (docs/security.md).
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_ledger.layout import RunLayout, StateLayout
from kt_supervisor.engine.run import run_records
from kt_supervisor.keeper import proctree

DEEPEST = 512
"""How many ancestors are looked at: more than a process tree is deep, and a bound should it change meanwhile."""
CGROUP_ROOT = "/sys/fs/cgroup"
_RUN = b"KT_RUN="


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a process is, as far as it says from which Run it comes: itself first, then its ancestors."""

    pids: tuple[tuple[int, int], ...]  # (pid, start ticks)
    runs: tuple[str, ...]  # the values of KT_RUN that they were started with
    cgroup: str  # in the unified hierarchy; empty where there is none


def lineage(pid: int) -> Lineage:
    """Return what /proc says of a process and its ancestors."""
    pids: list[tuple[int, int]] = []
    runs: list[str] = []
    process = proctree.read(pid)
    while process is not None and len(pids) < DEEPEST:
        pids.append((process.pid, process.start_ticks))
        runs += _runs_of(process.pid)
        process = proctree.read(process.parent) if process.parent > 0 else None
    return Lineage(tuple(pids), tuple(runs), _cgroup_of(pid))


def run_of(process: Lineage, files: StateLayout, under_way: Iterable[RunLayout]) -> RunLayout | None:
    """Return the Run of this state directory that a process belongs to, None where it is nobody's.

    It does where it, or an ancestor of it, is the keeper of a Run or carries its id in the environment that it was
    started with, or where its cgroup is the Run's or below it.
    """
    for run_id in process.runs:
        if "/" not in run_id and run_id not in (".", "..") and files.run(run_id).root.is_dir():
            return files.run(run_id)
    for run in under_way:
        record = run_records.read_json(run.record) or {}
        if (record.get("keeper_pid"), record.get("keeper_start_ticks")) in process.pids:
            return run
        if _is_below(process.cgroup, record.get("cgroup")):
            return run
    return None


def owner_of(run: RunLayout) -> tuple[str, str]:
    """Return (name, instance id) of the agent whose Run this is; empty ones where nobody wrote that down."""
    found: dict[str, Any] = run_records.owner(run) or {}
    return str(found.get("name", "")), str(found.get("instance_id", ""))


def _runs_of(pid: int) -> list[str]:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # gone, or hidden, as keepers are: those are known by their pid
    return [os.fsdecode(found[len(_RUN) :]) for found in variables if found.startswith(_RUN)]


def _cgroup_of(pid: int) -> str:
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    return next((line[3:] for line in lines if line.startswith("0::")), "")


def _is_below(cgroup: str, of: object) -> bool:
    if not isinstance(of, str) or not cgroup:
        return False
    whole = of.removeprefix(CGROUP_ROOT).rstrip("/")
    return bool(whole) and (cgroup == whole or cgroup.startswith(whole + "/"))
