"""What the keeper writes about itself: `run.json`, `exit.json`, `keeper.log`, and how each survives a crash."""

import json
import os

from kt_ledger import durable, process_identity
from kt_supervisor.keeper import PROTOCOL, loop, places, proctree

MAX_NOTES_BYTES = 256 * 1024


class Notes:
    """`keeper.log`: what happened that nobody else can know. Never raises, never grows past 256 KiB."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._written_bytes = 0

    def add(self, text: str) -> None:
        """Append one line, with the wall clock in nanoseconds; a full disk or a long story loses it."""
        line = f"{loop.wall_ns()} {text}\n".encode("utf-8", "backslashreplace")
        if self._written_bytes + len(line) > MAX_NOTES_BYTES:
            return
        try:
            self._written_bytes += os.write(self._descriptor, line)
        except OSError:
            pass  # the place to complain is the one that is full


def replace(name: str, record: dict[str, object]) -> None:
    """Write `name` in the working directory whole or not at all, durably.

    Raises:
        OSError: it could not be written; the old file, if any, is untouched.
    """
    fresh = f".{name}.{os.getpid()}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        view = memoryview(json.dumps(record).encode() + b"\n")
        while view:
            view = view[os.write(descriptor, view) :]
        durable.durable(descriptor)
    except BaseException:
        os.unlink(fresh)
        raise
    finally:
        os.close(descriptor)
    os.rename(fresh, name)
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def identity(run_id: str, instance_id: str, agent_pid: int) -> dict[str, object]:
    """Return who keeper and agent are, for `run.json`."""
    return {
        "protocol": PROTOCOL,
        "run_id": run_id,
        "instance_id": instance_id,
        "keeper_pid": os.getpid(),
        "keeper_start_ticks": proctree.start_ticks(os.getpid()),
        "agent_pid": agent_pid,
        "agent_start_ticks": proctree.start_ticks(agent_pid),
        "pgid": agent_pid,
        "boot_id": process_identity.boot_id(),
    }


def outcome(run_id: str, status: int | None, *, spawn_error: str | None) -> dict[str, object]:
    """Return how the agent's main process ended, for `exit.json`; `status` as of wait(2)."""
    code = None if status is None or spawn_error else os.waitstatus_to_exitcode(status)
    return {
        "protocol": PROTOCOL,
        "run_id": run_id,
        "code": None if code is None or code < 0 else code,
        "signal": None if code is None or code >= 0 else -code,
        "spawn_error": spawn_error,
    }


def described(error: Exception) -> str:
    """Return an unexpected error with the places it came through, innermost last (the traceback module is too big)."""
    passed = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        passed.append(f"{code.co_filename.rpartition('/')[2]}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    return f"{type(error).__name__}: {error} [{' > '.join(passed)}]"


def folder_gone() -> bool:
    """Return whether somebody deleted the Run's folder: then nothing can be written any more."""
    return os.stat(".").st_nlink == 0


def open_log() -> int:
    """Return a descriptor that appends to `keeper.log`, 0600."""
    return os.open(places.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
