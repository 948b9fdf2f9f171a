"""The one file of this room that starts processes: keepers, the gateway and hooks, each in a session of its own."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import kt_supervisor.keeper
from kt_ledger.layout import StateLayout
from kt_supervisor.engine import environment

AGENT_UMASK = 0o022
"""What an agent's own files get; the keeper sets a stricter one for itself and gives this on."""

_KEEPER = Path(kt_supervisor.keeper.__file__).with_name("__main__.py")


LOOK_EVERY_S = 0.05
READ_BYTES = 1 << 16
QUICK_BYTES = 1 << 20
"""What is read of a command's output at any speed; the rest is read slowly, so that it costs us little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended; `error` where it could not be started."""

    code: int | None = None
    timed_out: bool = False
    cut_short: bool = False
    error: str | None = None
    output: bytes = b""

    @property
    def is_good(self) -> bool:
        """Whether it did what it was meant to."""
        return self.code == 0 and not self.timed_out and not self.cut_short


class Spawner:
    """Starts our processes and reaps them without waiting for any."""

    def __init__(self, files: StateLayout) -> None:
        self._files = files
        self._children: set[subprocess.Popen[bytes]] = set()
        self._counting = threading.Lock()  # children are started in threads, and reaped in the event loop

    def engine_command(self) -> tuple[str, ...]:
        """Return the command line by which a keeper brings an engine like this one back."""
        module = (sys.executable, "-m", "kt_supervisor.engine")
        return (*module, "--revive", "--state-dir", str(self._files.root))

    def keeper(
        self, specification: bytes, *, log: Path, handed: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """Start the keeper of one Run and hand it what it is to do; raises OSError.

        Args:
            specification: what `specification.build` made.
            log: where its own words go.
            handed: descriptors that it inherits under the same numbers.
        """
        command = [sys.executable, "-I", "-S", str(_KEEPER)]
        variables = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        keeper = self._start(command, log, variables, subprocess.PIPE, umask=AGENT_UMASK, handed=handed)
        assert keeper.stdin is not None
        try:
            keeper.stdin.write(specification)
            keeper.stdin.close()
        except BrokenPipeError:
            pass  # it has died, and its exit code tells why
        return keeper

    def gateway(self) -> subprocess.Popen[bytes]:
        """Start the gateway of this state directory; raises OSError."""
        self._files.gateway.root.mkdir(mode=0o700, exist_ok=True)
        command = [sys.executable, "-m", "kt_addons", "--state-dir", str(self._files.root)]
        variables = environment.for_our_processes()
        return self._start(command, self._files.gateway.log, variables, subprocess.DEVNULL)

    def command(
        self,
        argv: Sequence[str],
        *,
        given: bytes,
        folder: Path,
        variables: Mapping[str, str],
        within_s: float,
        tail_bytes: int,
        stop: threading.Event,
    ) -> Ran:
        """Run a command to its end, or to the end of its time, and end its process group in either case.

        Blocks its thread. `given` is its standard input. What leaves the group (setsid(2)) is not followed.
        """
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writing, True)
        try:
            # A file, not a pipe: a command that never reads its input holds up nothing.
            with tempfile.TemporaryFile() as question:
                question.write(given)
                question.seek(0)
                child = subprocess.Popen(
                    list(argv),
                    stdin=question,
                    stdout=writing,
                    stderr=writing,
                    cwd=folder,
                    env=dict(variables),
                    start_new_session=True,
                    umask=AGENT_UMASK,
                )
            os.close(writing)
            writing = -1
            return _followed(child, reading, within_s=within_s, tail_bytes=tail_bytes, stop=stop)
        except (OSError, ValueError) as error:
            return Ran(error=str(getattr(error, "strerror", None) or error))
        finally:
            os.close(reading)
            if writing >= 0:
                os.close(writing)

    def reap(self) -> None:
        """Collect those that have ended."""
        with self._counting:
            self._children = {child for child in self._children if child.poll() is None}

    def _start(
        self,
        command: list[str],
        log: Path,
        variables: dict[str, str],
        stdin: int,
        *,
        umask: int = 0o077,
        handed: tuple[int, ...] = (),
    ) -> subprocess.Popen[bytes]:
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            child = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=said,
                stderr=said,
                cwd=self._files.root,
                env=variables,
                start_new_session=True,
                umask=umask,
                pass_fds=handed,
            )
        finally:
            os.close(said)
        with self._counting:
            self._children.add(child)
        return child


def _followed(
    child: subprocess.Popen[bytes], reading: int, *, within_s: float, tail_bytes: int, stop: threading.Event
) -> Ran:
    """Read a child's output until it has ended or must end; nothing of its group is left."""
    ends_s, seen, tail, open_ = time.monotonic() + within_s, 0, b"", True
    timed_out = False
    try:
        while not (ended := _has_ended(child)) and not stop.is_set():
            if timed_out := time.monotonic() > ends_s:
                break
            if not open_ or seen > QUICK_BYTES:
                stop.wait(LOOK_EVERY_S)
            if open_ and select.select([reading], [], [], LOOK_EVERY_S)[0]:
                data = os.read(reading, READ_BYTES)
                open_, seen, tail = bool(data), seen + len(data), (tail + data)[-tail_bytes:]
    finally:
        # Its number is the group's as long as it is not reaped, so this can meet nobody else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        code = child.wait()
    with contextlib.suppress(BlockingIOError):
        tail = (tail + os.read(reading, READ_BYTES))[-tail_bytes:]
    return Ran(code=code, timed_out=timed_out, cut_short=not ended and not timed_out, output=tail)


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
