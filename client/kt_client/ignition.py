"""Brings the engine up, and down: one per state directory, detached from whoever happened to need it.

Many callers at once agree by a lock on the state directory itself, so that fifty of them start one process and not
fifty; the engine's own lock decides should two be started all the same. The engine is nobody's child: it forks once
(`--detach`), and the process that was started here ends, with its code, as soon as the engine serves or has failed.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kt_client import place
from kt_client.errors import EngineUnavailable, InsideAnAgent, KtError
from kt_client.link import Link
from kt_ledger.layout import StateLayout

if TYPE_CHECKING:
    import subprocess

DEADLINE_S = 15.0
_LOOK_EVERY_S = 0.02
_AGAIN_AFTER_S = 0.25
_LAST_LINES = 12
_ROOM_BYTES = 1 << 20  # an engine's journal, socket and record want less


def command(files: StateLayout) -> list[str]:
    """Return the command line of the engine of a state directory, in the foreground."""
    return [sys.executable, "-m", "kt_supervisor.engine", "--state-dir", str(files.root)]


def make_state_dir(root: Path) -> None:
    """Make the state directory, 0700, where it is missing.

    Raises:
        KtError: exit 1, where it cannot be made, or is no directory, or is somebody else's.
    """
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        if (owner := root.stat().st_uid) != os.geteuid():
            raise PermissionError(f"it belongs to the user with id {owner}")
        if not os.access(root, os.W_OK | os.X_OK):
            raise PermissionError("it cannot be written to")
    except OSError as error:
        raise KtError(
            f"cannot use the state directory {root}: got {error.strerror or error}, wanted a directory of our own; "
            f"set KTESIO_STATE_DIR to one"
        ) from error


def ensure(files: StateLayout, *, deadline_s: float = DEADLINE_S) -> bool:
    """Have an engine answer at the state directory's socket, and return whether this call started it.

    Raises:
        InsideAnAgent: exit 1, inside of an agent of this very state directory.
        EngineUnavailable: exit 1, where none answers within `deadline_s`; the last lines of its log are in the message.
    """
    link = Link(files.engine_socket)
    if link.answers():
        return False
    _refuse_inside(files)
    make_state_dir(files.root)
    child: subprocess.Popen[bytes] | None = None
    end = time.monotonic() + deadline_s
    with _turn(files.root) as lock:
        while time.monotonic() < end:
            if link.answers():
                _reap(child, end)
                return child is not None
            if child is None and _taken(lock):
                # Whoever had the turn before may have finished between the look and the lock.
                child = None if link.answers() else _spawn(files)
            elif child is not None and child.poll() == 0:
                # It left the place to one that does not answer, which has only just begun, or is about to end: one that
                # is replaced has no socket any more and still its lock.
                child = None
                time.sleep(_AGAIN_AFTER_S)
            elif child is not None and child.poll() is not None:
                break
            time.sleep(_LOOK_EVERY_S)
    if link.answers():
        return False
    raise EngineUnavailable(_why(files, child, deadline_s), code="engine_unavailable")


def _refuse_inside(files: StateLayout) -> None:
    """Refuse to start an engine that would be a descendant of a keeper: it would end with the agent."""
    run_id = place.own_run()
    if run_id and "/" not in run_id and files.run(run_id).root.is_dir():
        raise InsideAnAgent(
            "no engine answers, and none is started from inside of an agent: it would end with it; wanted a terminal "
            "outside: kt engine start",
            code="inside_an_agent",
        )


def start(files: StateLayout) -> dict[str, Any]:
    """Have an engine, and return what it says of itself; `started` says whether this call started it."""
    started = ensure(files)
    said: dict[str, Any] = Link(files.engine_socket).ask("GET", "/v1/engine")
    return {"schema_version": 1, **said, "running": True, "started": started}


def stop(files: StateLayout, *, everything: bool, timeout_s: float) -> dict[str, Any]:
    """Stop the engine and return its answer once its process has ended.

    Args:
        files: the state directory.
        everything: stop agents and gateway as well.
        timeout_s: how long the answer may take, and the end of the process after it.

    Raises:
        EngineAway: there is none.
        KtError: it refused, or answered and did not end.
    """
    link = Link(files.engine_socket)
    pid = int(link.ask("GET", "/v1/engine")["pid"])
    answer: dict[str, Any] = link.ask(
        "POST", "/v1/engine/stop", body={"all": everything}, timeout_s=timeout_s
    )
    wait_for_the_end(pid, files, within_s=timeout_s)
    return {"schema_version": 1, **answer, "running": False}


def wait_for_the_end(pid: int, files: StateLayout, *, within_s: float) -> None:
    """Return once a process has ended. Raises KtError where it has not `within_s`."""
    end = time.monotonic() + within_s
    while not _gone(pid):
        if time.monotonic() > end:
            raise KtError(
                f"the engine (process {pid}) answered and did not end within {within_s:g} s; look at {files.engine_log}"
            )
        time.sleep(_LOOK_EVERY_S)


def _gone(pid: int) -> bool:
    """Return whether a process has ended; somebody's zombie counts as ended."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].startswith(b"Z")
    except ProcessLookupError:
        return True
    except OSError:
        return False  # no /proc here, or it went this very moment: the next look tells


@contextlib.contextmanager
def _turn(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(lock: int) -> bool:
    import fcntl  # here, since Windows has none, and imports us all the same

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _spawn(files: StateLayout) -> "subprocess.Popen[bytes]":
    import subprocess

    # Non-blocking, so that a log that is a FIFO is refused and not waited at (fifo(7)).
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        log = os.open(files.engine_log, flags, 0o600)
    except OSError as error:
        raise EngineUnavailable(
            f"cannot start the engine: got {error.strerror} for its log {files.engine_log}, wanted a file; move away "
            "what is there",
            code="engine_unavailable",
        ) from error
    os.set_blocking(log, True)
    try:
        return subprocess.Popen(
            [*command(files), "--detach"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=files.root,
            start_new_session=True,
        )
    except OSError as error:
        raise EngineUnavailable(
            f"cannot start the engine: {error}; check that {sys.executable} can be run",
            code="engine_unavailable",
        ) from error
    finally:
        os.close(log)


def _reap(child: "subprocess.Popen[bytes] | None", end: float) -> None:
    """Collect the process that was started; the engine that it forked serves, so it ends at once."""
    if child is not None:
        with contextlib.suppress(Exception):
            child.wait(max(end - time.monotonic(), 1.0))


def _why(files: StateLayout, child: "subprocess.Popen[bytes] | None", deadline_s: float) -> str:
    ended = child is not None and child.poll() is not None
    how = (
        f"it ended with code {child.returncode}"
        if child is not None and ended
        else f"no answer in {deadline_s:g} s"
    )
    try:
        lines = files.engine_log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
    except OSError:
        lines = []
    said = "\n  ".join(lines) or "(nothing)"
    return (
        f"the engine did not start: got {how}, wanted an answer at {files.engine_socket}; {_room(files.root)}"
        f"the last lines of {files.engine_log}:\n  {said}"
    )


def _room(root: Path) -> str:
    """Return a word about a disk that is full: whatever could not be written, its log can hardly say it."""
    free_bytes = (disk := os.statvfs(root)).f_bavail * disk.f_frsize
    if free_bytes >= _ROOM_BYTES:
        return ""
    return f"the disk of {root} has {free_bytes} bytes free: make room, then `kt engine start`; "
