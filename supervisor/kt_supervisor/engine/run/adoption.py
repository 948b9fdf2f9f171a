"""What became of a Run that nobody watched: evidence is gathered from its folder and the kernel, then judged.

Identity is boot id, pid and kernel start ticks; the Run's lock, inherited by the agent's tree, says whether anything of
it lives. What cannot be identified never receives a signal.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from kt_ledger import process_identity
from kt_ledger.layout import RunLayout
from kt_ledger.records import RunRow
from kt_supervisor.engine import state_dir
from kt_supervisor.engine.run import run_records
from kt_supervisor.engine.run.ending import Exit
from kt_supervisor.keeper import proctree

REBOOTED = "the machine was restarted"


class Verdict(StrEnum):
    """What is to be done about a Run."""

    ADOPT = "adopt"  # its keeper lives: say hello
    FINISH = "finish"  # its exit record is there: fold its logs, and that was it
    REPLACE = "replace"  # its keeper is dead and the agent lives: give it another keeper
    END = "end"  # its keeper and the agent are dead, something else of it lives: end that, then it is lost
    LOST = "lost"  # nothing is left, and nobody recorded how it ended
    UNVERIFIABLE = "unverifiable"  # it cannot be told: nothing receives a signal, and it is looked at again


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What can be known of a Run without asking anybody.

    `keeper_alive` and `agent_alive` are about exactly the processes of the record: None where there is no record.
    `agent_proven`: besides pid and start ticks, the agent carries the Run's id, or its lock is held.
    """

    exit: Exit | None
    record: dict[str, Any] | None
    same_boot: bool
    lock_held: bool
    keeper_alive: bool | None
    agent_alive: bool | None = None
    agent_proven: bool = False


def judge(evidence: Evidence) -> Verdict:
    """Return what is to be done, before the keeper was asked."""
    if evidence.exit is not None:
        return Verdict.FINISH
    if not evidence.same_boot:
        return (
            Verdict.LOST
        )  # every process of that boot is gone; numbers in the record are other people's now
    if evidence.keeper_alive is False and evidence.agent_alive:
        return Verdict.REPLACE if evidence.agent_proven else Verdict.UNVERIFIABLE
    if not evidence.lock_held:
        return Verdict.LOST
    return Verdict.END if evidence.keeper_alive is False else Verdict.ADOPT


def judge_silence(evidence: Evidence) -> Verdict:
    """Return what is to be done once a keeper that seemed to be there did not answer."""
    verdict = judge(evidence)
    # It may be stopped, or the machine be busy: a tree whose parent lives is not ours to end.
    return Verdict.UNVERIFIABLE if verdict is Verdict.ADOPT else verdict


def trouble(verdict: Verdict, evidence: Evidence) -> str | None:
    """Return why a Run cannot be verified, and what to do; None where it can."""
    if verdict is not Verdict.UNVERIFIABLE:
        return None
    record = evidence.record or {}
    if evidence.keeper_alive:
        pid = record.get("keeper_pid")
        return (
            f"unverifiable: its keeper (process {pid}) does not answer; `kill -CONT {pid}` if it is stopped, "
            f"`kill -9 {pid}` to have it replaced"
        )
    if evidence.agent_alive:
        pid = record.get("agent_pid")
        return (
            f"unverifiable: process {pid} may be the agent, but carries nothing that proves it; look at it with "
            f"`ps {pid}` and end it by hand"
        )
    return (
        "unverifiable: something holds the lock of its Run, and nobody has said who; look with "
        "`fuser` at the lock file in the Run's folder"
    )


def gather(files: RunLayout, run: RunRow) -> Evidence:
    """Look at a Run's folder and at the processes that it names."""
    # The lock first: an exit record that appears between the two looks is then still seen.
    lock_held = state_dir.is_held(files.lock) is True
    record = run_records.read_json(files.record)
    boot_id = (record or {}).get("boot_id") or run.boot_id
    same_boot = boot_id in (None, "", process_identity.boot_id())
    keeper_alive = agent_alive = None
    proven = False
    if record is not None:
        keeper_alive = is_alive(record.get("keeper_pid"), record.get("keeper_start_ticks"))
        agent_alive = is_alive(record.get("agent_pid"), record.get("agent_start_ticks"))
        proven = agent_alive and (lock_held or carries(record["agent_pid"], f"KT_RUN={run.id}"))
    found = run_records.read_json(files.exit)
    return Evidence(
        exit=None if found is None else Exit.from_json(found),
        record=record,
        same_boot=same_boot,
        lock_held=lock_held,
        keeper_alive=keeper_alive,
        agent_alive=agent_alive,
        agent_proven=proven,
    )


def exactly(pid: object, ticks: object) -> proctree.Process | None:
    """Return exactly this process while it lives."""
    found = proctree.read(pid) if isinstance(pid, int) else None
    return found if found is not None and found.start_ticks == ticks and found.alive() else None


def is_alive(pid: object, ticks: object) -> bool:
    """Tell whether exactly this process lives."""
    return exactly(pid, ticks) is not None


def survivors(ended: Exit) -> list[int]:
    """Return which processes of an exit record's survivors are still there."""
    return [pid for pid in ended.survivors if (found := proctree.read(pid)) and found.alive()]


def carries(pid: int, variable: str) -> bool:
    """Tell whether a process was started with `variable` (NAME=VALUE); False where that is not ours to see."""
    try:
        return variable.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
