"""What became of a Run that nobody watched: evidence is gathered from its folder and the kernel, then judged.

Identity is boot id, pid and kernel start ticks; the Run's lock, inherited by the agent's tree, says whether anything of
it lives. What cannot be identified never receives a signal.
"""

import json
import os
import signal
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from kt_ledger.layout import RunLayout
from kt_ledger.records import RunRow
from kt_supervisor.engine import state_dir
from kt_supervisor.keeper import proctree, system

END_GRACE_S = 2.0
LOOK_S = 0.05
CLEAN_LOOKS = 2


class Verdict(StrEnum):
    """What is to be done about a Run."""

    ADOPT = "adopt"  # its keeper lives: say hello
    FINISH = "finish"  # its exit record is there: fold its logs, and that was it
    END = "end"  # its keeper is dead and something of the agent lives: end that, then it is lost
    LOST = "lost"  # nothing is left, and nobody recorded how it ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What can be known of a Run without asking anybody."""

    exit: dict[str, Any] | None
    record: dict[str, Any] | None
    same_boot: bool
    lock_held: bool
    keeper_alive: bool | None  # None: nobody has said who the keeper is


def judge(evidence: Evidence) -> Verdict:
    """Return what is to be done."""
    if evidence.exit is not None:
        return Verdict.FINISH
    if not evidence.same_boot:
        return (
            Verdict.LOST
        )  # every process of that boot is gone; numbers in the record are other people's now
    if not evidence.lock_held:
        return Verdict.LOST
    return Verdict.END if evidence.keeper_alive is False else Verdict.ADOPT


def gather(files: RunLayout, run: RunRow) -> Evidence:
    """Look at a Run's folder and at the processes that it names."""
    # The lock first: an exit record that appears between the two looks is then still seen.
    lock_held = state_dir.is_held(files.lock) is True
    record = read_json(files.record)
    boot_id = (record or {}).get("boot_id") or run.boot_id
    keeper_alive = None
    if record is not None:
        keeper_alive = is_alive(record.get("keeper_pid"), record.get("keeper_start_ticks"))
    return Evidence(
        exit=read_json(files.exit),
        record=record,
        same_boot=boot_id in (None, "", system.boot_id()),
        lock_held=lock_held,
        keeper_alive=keeper_alive,
    )


def is_alive(pid: object, ticks: object) -> bool:
    """Tell whether exactly this process lives."""
    found = proctree.read(pid) if isinstance(pid, int) else None
    return found is not None and found.start_ticks == ticks and found.alive()


def survivors(ended: dict[str, Any]) -> list[int]:
    """Return which processes of an exit record's survivors are still there."""
    named = [pid for pid in ended.get("survivors") or () if isinstance(pid, int)]
    return [pid for pid in named if (found := proctree.read(pid)) and found.alive()]


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a record; None where there is none, or it is no object."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def end_tree(run_id: str, record: dict[str, Any] | None) -> bool:
    """End what is left of a Run whose keeper is dead; blocks for some seconds. Return whether nothing is left.

    Reached are the agent of the record, where it is still that process, with everything below it, and whatever
    carries the Run's id in its environment.
    """
    begun_s, clean = time.monotonic(), 0
    asked = False
    while clean < CLEAN_LOOKS:
        left = _left(run_id, record)
        clean = 0 if left else clean + 1
        late = time.monotonic() - begun_s > END_GRACE_S
        if time.monotonic() - begun_s > 3 * END_GRACE_S and left:
            return False
        for process in left:
            if late:
                proctree.send(process, signal.SIGKILL)
            elif not asked:
                proctree.send(process, signal.SIGTERM)
                proctree.send(process, signal.SIGCONT)
        asked = asked or bool(left)
        time.sleep(LOOK_S)
    return True


def carrying(variable: str) -> list[proctree.Process]:
    """Return the living processes that were started with `variable` (NAME=VALUE) in their environment (Linux)."""
    if not Path("/proc/self/environ").exists():
        return []
    wanted = variable.encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            carries = wanted in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # gone, or not ours to see
        process = proctree.read(int(folder.name)) if carries else None
        if process and process.alive():
            found.append(process)
    return found


def _left(run_id: str, record: dict[str, Any] | None) -> list[proctree.Process]:
    found = {process.pid: process for process in carrying(f"KT_RUN={run_id}")}
    agent = (
        proctree.read(record["agent_pid"]) if record and isinstance(record.get("agent_pid"), int) else None
    )
    if agent and record and agent.start_ticks == record.get("agent_start_ticks") and agent.alive():
        found[agent.pid] = agent
        found.update({process.pid: process for process in proctree.descendants(agent.pid)})
    return list(found.values())
