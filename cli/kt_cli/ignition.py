"""Brings the engine up: one per state directory, detached from the terminal that happened to need it.

Many commands at once agree by a lock on the state directory itself, so that fifty of them start one process and not
fifty; the engine's own lock decides should two be started all the same.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kt_cli import exit_codes
from kt_cli.failure import Failure
from kt_cli.link import Link
from kt_ledger.layout import StateLayout

DEADLINE_S = 15.0
_LOOK_EVERY_S = 0.02
_LAST_LINES = 12


def command(layout: StateLayout) -> list[str]:
    """Return the command line of the engine of a state directory."""
    return [sys.executable, "-m", "kt_supervisor.engine", "--state-dir", str(layout.root)]


def make_state_dir(root: Path) -> None:
    """Make the state directory, 0700, where it is missing.

    Raises:
        Failure: exit 1, where it cannot be made, or is no directory, or is somebody else's.
    """
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        if (owner := root.stat().st_uid) != os.geteuid():
            raise PermissionError(f"it belongs to the user with id {owner}")
        if not os.access(root, os.W_OK | os.X_OK):
            raise PermissionError("it cannot be written to")
    except OSError as error:
        raise Failure(
            f"cannot use the state directory {root}: got {error.strerror or error}, wanted a directory of our own; "
            f"set KTESIO_STATE_DIR to one",
            exit_code=exit_codes.FAILED,
        ) from error


def ensure(layout: StateLayout, *, deadline_s: float = DEADLINE_S) -> bool:
    """Have an engine answer at the state directory's socket, and return whether this call started it.

    Raises:
        Failure: exit 1, where none answers within `deadline_s`; the last lines of its log are in the message.
    """
    link = Link(layout.engine_socket)
    if link.answers():
        return False
    make_state_dir(layout.root)
    child: subprocess.Popen[bytes] | None = None
    end = time.monotonic() + deadline_s
    with _turn(layout.root) as lock:
        while time.monotonic() < end:
            if link.answers():
                return child is not None
            if child is None and _taken(lock):
                # Whoever had the turn before may have finished between the look and the lock.
                child = None if link.answers() else _spawn(layout)
            elif child is not None and child.poll() not in (None, 0):
                break
            time.sleep(_LOOK_EVERY_S)
    if link.answers():
        return False
    raise Failure(_why(layout, child, deadline_s), exit_code=exit_codes.FAILED, code="engine_unavailable")


def extinguish(layout: StateLayout, *, everything: bool, timeout_s: float) -> Any:
    """Stop the engine and return its answer once its process has ended.

    Args:
        layout: the state directory.
        everything: stop agents and gateway as well.
        timeout_s: how long the answer may take, and the end of the process after it.

    Raises:
        EngineAway: there is none.
        Failure: it refused, or answered and did not end.
    """
    link = Link(layout.engine_socket)
    pid = int(link.ask("GET", "/v1/engine")["pid"])
    answer = link.ask("POST", "/v1/engine/stop", body={"all": everything}, timeout_s=timeout_s)
    end = time.monotonic() + timeout_s
    while not _gone(pid):
        if time.monotonic() > end:
            raise Failure(
                f"the engine (process {pid}) answered and did not end within "
                f"{timeout_s:g} s; look at {layout.engine_log}",
                exit_code=exit_codes.FAILED,
            )
        time.sleep(_LOOK_EVERY_S)
    return answer


def _gone(pid: int) -> bool:
    """Return whether a process has ended; a child of ours is reaped, somebody else's zombie counts as ended."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
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
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _spawn(layout: StateLayout) -> subprocess.Popen[bytes]:
    log = os.open(layout.engine_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            command(layout),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=layout.root,
            start_new_session=True,
        )
    except OSError as error:
        raise Failure(
            f"cannot start the engine: {error}; check that {sys.executable} can be run",
            exit_code=exit_codes.FAILED,
        ) from error
    finally:
        os.close(log)


def _why(layout: StateLayout, child: subprocess.Popen[bytes] | None, deadline_s: float) -> str:
    ended = child is not None and child.poll() is not None
    how = (
        f"it ended with code {child.returncode}"
        if child is not None and ended
        else f"no answer in {deadline_s:g} s"
    )
    try:
        lines = layout.engine_log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
    except OSError:
        lines = []
    said = "\n  ".join(lines) or "(nothing)"
    return (
        f"the engine did not start: got {how}, wanted an answer at {layout.engine_socket}; "
        f"the last lines of {layout.engine_log}:\n  {said}"
    )
