"""Commands that the adapter declares, run beside the agent with its environment: each below a runner of its own."""

import json
import os
import signal
from collections.abc import Callable

from kt_supervisor.keeper import loop, requests, runner
from kt_supervisor.keeper.specification import Specification

MAX_AT_ONCE = 8
_MAX_RESULT_BYTES = 64 * 1024

Record = dict[str, object]


class _Running:
    __slots__ = ("answer", "done", "result")

    def __init__(self, result: int, done: Callable[[Record], None]) -> None:
        self.result = result
        self.done = done
        self.answer = b""


class Commands:
    """Starts commands and tells how they ended. `apart` is kept up to date with the runners' pids."""

    def __init__(
        self,
        events: loop.Loop,
        spec: Specification,
        *,
        umask: int,
        apart: set[int],
        note: Callable[[str], None],
    ) -> None:
        self._loop = events
        self._spec = spec
        self._umask = umask
        self._apart = apart
        self._note = note
        self._running: dict[int, _Running] = {}

    def running(self) -> bool:
        """Return whether any has not ended."""
        return bool(self._running)

    def start(self, command: requests.Command, *, timeout_s: float, done: Callable[[Record], None]) -> None:
        """Run `command`; `done` hears {code, signal, timed_out, error, last_lines} once nothing of it is left.

        Raises:
            RequestInvalid: too many run already, or the system has no process for it.
        """
        if len(self._running) >= MAX_AT_ONCE:
            raise requests.RequestInvalid(
                f"got {MAX_AT_ONCE} commands that still run, wanted fewer; ask again later"
            )
        ours = theirs = -1
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            ours, theirs = os.pipe()
            pid = os.fork()
            if not pid:
                runner.live(
                    command.argv,
                    self._spec.env | command.env,
                    self._spec.cwd,
                    timeout_s=timeout_s,
                    umask=self._umask,
                    result=theirs,
                )
        except OSError as error:
            if ours >= 0:
                os.close(ours)
            raise requests.RequestInvalid(f"{command.argv[0]}: could not be started: {error}") from error
        finally:
            if theirs >= 0:
                os.close(theirs)
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        self._apart.add(pid)
        self._running[pid] = _Running(ours, done)
        os.set_blocking(ours, False)
        self._loop.watch(ours, lambda _events: self._take(pid))

    def end(self) -> None:
        """End all of them now, each with its tree."""
        for pid in self._running:
            os.kill(pid, signal.SIGTERM)  # our own unreaped child: the number is nobody else's

    def kill(self) -> None:
        """Kill the runners; what is left below them comes to the agent's tree."""
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)

    def reaped(self, pids: list[int]) -> None:
        """Say which children were reaped."""
        for pid in pids:
            running = self._running.get(pid)
            if running is not None:
                while self._read(pid):
                    pass
                del self._running[pid]
                self._apart.discard(pid)
                self._loop.unwatch(running.result)
                os.close(running.result)
                running.done(_told(running.answer))

    def _take(self, pid: int) -> None:
        self._read(pid)

    def _read(self, pid: int) -> bool:
        running = self._running[pid]
        try:
            data = os.read(running.result, 16 * 1024)
        except BlockingIOError:
            return False
        if not data:
            self._loop.unwatch(running.result)
        elif len(running.answer) < _MAX_RESULT_BYTES:
            running.answer += data
        return bool(data)


def _told(answer: bytes) -> Record:
    told: Record
    try:
        told = json.loads(answer)
    except ValueError:
        told = {"error": "its runner was killed"}
    return {"code": None, "signal": None, "timed_out": False, "error": None, "last_lines": []} | told
