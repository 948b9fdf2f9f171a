"""Ending what is left of a Run whose keeper and agent are dead. Blocks for some seconds: call it in a thread.

Reached are the agent of the record, where it is still that process, with everything below it; whatever carries the
Run's id in its environment; and whatever holds the Run's lock, which every process of the tree inherits. What has
closed that descriptor, left the tree and changed its environment cannot be told from a stranger, and is left alone.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_supervisor.engine.run import adoption
from kt_supervisor.keeper import proctree

GRACE_S = 2.0
BOUND_S = 6.0
LOOK_S = 0.05
CLEAN_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Left:
    """What was found: the processes that were asked to end, and those that did not."""

    ended: tuple[int, ...]
    survivors: tuple[int, ...]

    def describe(self) -> str:
        """Return it in words."""
        if self.survivors:
            named = ", ".join(map(str, self.survivors))
            return f"its keeper died, and what is left of it could not be ended: processes {named}"
        if self.ended:
            return "its keeper died, so its exit is not known; what was left of it was ended"
        return "nothing of it was found, and nobody recorded how it ended"


def end(run_id: str, record: dict[str, Any] | None, *, lock: Path) -> Left:
    """Ask everything that is left to end, then kill it; return what became of it."""
    begun_s, clean = time.monotonic(), 0
    asked: set[int] = set()
    while clean < CLEAN_LOOKS:
        left = find(run_id, record, lock=lock)
        clean = 0 if left else clean + 1
        late_s = time.monotonic() - begun_s
        if left and late_s > BOUND_S:
            return Left(tuple(sorted(asked)), tuple(sorted(process.pid for process in left)))
        for process in left:
            if late_s > GRACE_S:
                proctree.send(process, signal.SIGKILL)
            elif process.pid not in asked:
                proctree.send(process, signal.SIGTERM)
                proctree.send(process, signal.SIGCONT)
            asked.add(process.pid)
        time.sleep(LOOK_S)
    return Left(tuple(sorted(asked)), ())


def find(run_id: str, record: dict[str, Any] | None, *, lock: Path) -> list[proctree.Process]:
    """Return the living processes that are of the Run."""
    found: dict[int, proctree.Process] = {}
    inode = _inode(lock)
    for process in proctree.everybody():
        pid = process.pid
        if process.alive() and (
            adoption.carries(pid, f"KT_RUN={run_id}") or (inode is not None and _holds(pid, inode))
        ):
            found[pid] = process
    named = record or {}
    if agent := adoption.exactly(named.get("agent_pid"), named.get("agent_start_ticks")):
        found[agent.pid] = agent
        found.update({process.pid: process for process in proctree.descendants(agent.pid)})
    return list(found.values())


def _inode(lock: Path) -> tuple[int, int] | None:
    try:
        facts = lock.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _holds(pid: int, inode: tuple[int, int]) -> bool:
    """Tell whether a process holds the lock on a file through a descriptor that it inherited.

    Somebody who merely has the file open has no lock in the descriptor's own facts (proc_pid_fdinfo(5), Linux 4.1).
    """
    if pid == os.getpid():
        return False
    try:
        descriptors = list(os.scandir(f"/proc/{pid}/fd"))
    except OSError:
        return False
    for entry in descriptors:
        try:
            facts = entry.stat()
            if (facts.st_dev, facts.st_ino) != inode:
                continue
            if "FLOCK" in Path(f"/proc/{pid}/fdinfo/{entry.name}").read_text():
                return True
        except OSError:
            continue
    return False
