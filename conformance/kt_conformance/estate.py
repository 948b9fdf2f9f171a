"""What a run of the kit has in the temporary directory, whose it is, and the end of all of it.

A kit that is killed (SIGKILL, out of memory) cannot clean up. Its undertaker does so at once (`undertaker`), and where
that was killed as well, the next run of the kit does.

Law: nothing is touched whose kit may live. The folder's note is locked for the kit's life (flock(2): the kernel lets go
of it with the process, and also shows it to other containers on the same folder), and names the kit's process. A folder
without a note is left alone.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kt_client.errors import EngineAway, KtError
from kt_conformance import processes
from kt_conformance.bounded_client import BoundedClient
from kt_conformance.deadline import Deadline
from kt_ledger import process_identity
from kt_ledger.layout import StateLayout

PREFIX = "kt-tck-"
NOTE = "kit.json"
STATE = "state"
KEEPER = "kt_supervisor/keeper"
ANSWER_S = 5.0
STOP_TIMEOUT_S = 10.0
KILL_TIMEOUT_S = 5.0
_LOOK_EVERY_S = 0.05


def found() -> tuple[Path, int]:
    """Make the folder of a run, with the note of whose it is; return it, and the lock: closed, the folder is nobody's.

    Raises:
        OSError: there can be no folder; nothing is left of it.
    """
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        return root, _claim(root)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise


@contextlib.contextmanager
def taken_over(root: Path, *, within_s: float = 0.0) -> Iterator[dict[str, Any] | None]:
    """Give the note of a folder whose kit is dead, and keep everybody else off it; None where that is not so."""
    try:
        mode = root.lstat()
        if not stat.S_ISDIR(mode.st_mode) or mode.st_uid != os.geteuid():
            raise PermissionError("it is not ours")
        lock = os.open(root / NOTE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        yield None
        return
    try:
        note = _read(lock) if _locked(lock, within_s) else None
        yield None if note is None or _process(note) is not None else note
    finally:
        os.close(lock)


def sweep() -> list[str]:
    """End what kits that were killed have left in the temporary directory; return what was done, a sentence each."""
    told = []
    for root in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        with taken_over(root) as note:
            if note is None:
                continue
            ended = bury(root)
        whose = f"an earlier run of the kit (process {note.get('pid')}) was killed"
        told.append(
            f"{whose}: what it left was ended, and {root} removed"
            if ended
            else f"{whose}, and not all that it left could be ended: look at {root}"
        )
    return told


def bury(root: Path) -> bool:
    """End the engine of a folder with everything, and remove the folder; return whether nothing is left."""
    kt = BoundedClient(root / STATE)
    try:
        stop_engine(kt, timeout_s=STOP_TIMEOUT_S)
    except (KtError, OSError):
        forbid_another_engine(kt.files)
    if kill_what_is_left(root):
        return False  # the folder stays: it is what leads to them
    shutil.rmtree(root, ignore_errors=True)
    return not root.exists()


def stop_engine(kt: BoundedClient, *, timeout_s: float) -> None:
    """Stop the engine with agents and gateway. Raises KtError: there is none, or it did not."""
    kt.deadline = Deadline(ANSWER_S)
    if not kt.engine_status()["running"]:
        raise EngineAway("it has ended", code="engine_away")
    kt.deadline = Deadline(timeout_s)
    kt.engine_stop(everything=True, timeout_s=timeout_s)


def belonging(root: Path) -> list[processes.Process]:
    """Return the processes of a folder: by their command line, or by the Run that they are in.

    A keeper hides what it was started with: it is known by the agent that it is the parent of, or by its Run's record.
    """
    if not processes.visible():
        return []
    name = str(root)
    runs = StateLayout(root / STATE).runs
    folders = list(runs.iterdir()) if runs.is_dir() else []
    marks = {run.name for run in folders}
    there = {one.pid: one for run in folders for one in _recorded(run)}
    for process in processes.everyone():
        named = any(name in word for word in processes.arguments(process.pid))
        inside = processes.environment(process.pid).get("KT_RUN") in marks
        if named or inside:
            there[process.pid] = process
        if inside and (keeper := _keeper_of(process)) is not None:
            there[keeper.pid] = keeper
    there.pop(os.getpid(), None)
    return list(there.values())


def forbid_another_engine(files: StateLayout) -> None:
    """Tell keepers that nobody wants an engine here any more, so that none brings it back."""
    with contextlib.suppress(OSError):
        files.engine_stopped.write_text("the conformance kit has ended\n")


def kill_what_is_left(root: Path) -> list[processes.Process]:
    """Kill the processes of a folder, until there are none, or it takes too long; return what is left."""
    deadline = Deadline(KILL_TIMEOUT_S)
    while (left := belonging(root)) and deadline.left_s:
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
        threading.Event().wait(_LOOK_EVERY_S)
    return left


def _claim(root: Path) -> int:
    """Write the note under its lock, and give it its name only then: nobody finds one that is not locked yet."""
    born = root / f"{NOTE}.new"
    lock = os.open(born, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        note = {
            "pid": os.getpid(),
            "start_ticks": process_identity.start_ticks(),
            "boot_id": process_identity.boot_id(),
        }
        os.write(lock, json.dumps(note).encode() + b"\n")
        born.rename(root / NOTE)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _locked(lock: int, within_s: float) -> bool:
    deadline = Deadline(within_s)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if not deadline.left_s:
                return False
            threading.Event().wait(_LOOK_EVERY_S)
        else:
            return True


def _read(lock: int) -> dict[str, Any] | None:
    try:
        note = json.loads(os.pread(lock, 4096, 0))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) else None


def _process(document: dict[str, Any], *, whose: str = "") -> processes.Process | None:
    """Return the process that a document names, where it is that very one: of this boot, with this start."""
    pid, start = document.get(f"{whose}pid"), document.get(f"{whose}start_ticks")
    if not isinstance(pid, int) or not start or document.get("boot_id") != process_identity.boot_id():
        return None
    process = processes.read(pid)
    return process if process is not None and process.alive and process.start == start else None


def _recorded(run: Path) -> list[processes.Process]:
    """Return the keeper and the agent of a Run, where exactly these live."""
    try:
        record = json.loads((run / "run.json").read_bytes())
    except (OSError, ValueError):
        return []
    if not isinstance(record, dict):
        return []
    named = (_process(record, whose=whose) for whose in ("keeper_", "agent_"))
    return [process for process in named if process is not None]


def _keeper_of(process: processes.Process) -> processes.Process | None:
    parent = processes.read(process.parent)
    ours = parent is not None and any(KEEPER in word for word in processes.arguments(parent.pid))
    return parent if ours else None
