"""One command beside the agent: a fork of the keeper that is parent and subreaper of the command's whole tree.

That makes the two trees exact: what the command starts, however it detaches, hangs below the runner and ends with it,
and a freeze or a stop of the agent does not touch it. TERM to a runner ends the command at once.
"""

import fcntl
import json
import os
import select
import signal

from kt_supervisor.keeper import loop, places, proctree, spawn, system

MAX_LOG_BYTES = 256 * 1024
MAX_OUTPUT_BYTES = 64 * 1024
LAST_LINES = 20
_LINE_BYTES = 400
_TAIL_BYTES = 8 * 1024
_KILL_BOUND_S = 2.0
_LAST_READS = 32


def live(
    argv: list[str], env: dict[str, str], cwd: str, *, timeout_s: float, umask: int, result: int
) -> None:
    """Be the runner: run the command, write one line of JSON to `result`, end the process. Never returns."""
    try:
        os.setsid()
        result = fcntl.fcntl(result, fcntl.F_DUPFD_CLOEXEC, spawn.ABOVE)
        spawn.close_all_but((0, 1, 2, result))
        spawn.reset_signals()
        told, tell = os.pipe()
        os.set_blocking(tell, False)
        signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        system.become_subreaper(True)
        found = _run(argv, env, cwd, timeout_s=timeout_s, umask=umask, told=told)
        os.write(result, json.dumps(found).encode() + b"\n")
    except BaseException as error:
        os.write(result, json.dumps({"error": f"could not be run: {error}"}).encode() + b"\n")
    finally:
        os._exit(0)


def _run(
    argv: list[str], env: dict[str, str], cwd: str, *, timeout_s: float, umask: int, told: int
) -> dict[str, object]:
    out, theirs = os.pipe()
    verdict, judged = os.pipe()
    pid = os.fork()
    if not pid:
        _become(argv, env, cwd, umask=umask, out=theirs, verdict=judged)
    os.close(theirs)
    os.close(judged)
    output = _Output(out)
    status, timed_out = _await(pid, output, told=told, timeout_s=timeout_s)
    status = _sweep(pid, status)
    output.drain()
    why = os.read(verdict, 512).decode("utf-8", "replace")
    code = None if why or status is None else os.waitstatus_to_exitcode(status)
    output.close(f"{argv[0]} ended: {why or code}" + (", its time was up" if timed_out else ""))
    return {
        "code": None if code is None or code < 0 else code,
        "signal": None if code is None or code >= 0 else -code,
        "timed_out": timed_out,
        "error": f"{argv[0]}: {why}" if why else None,
        "last_lines": output.last_lines(),
    }


def _become(argv: list[str], env: dict[str, str], cwd: str, *, umask: int, out: int, verdict: int) -> None:
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        verdict = fcntl.fcntl(verdict, fcntl.F_DUPFD_CLOEXEC, spawn.ABOVE)
        out = fcntl.fcntl(out, fcntl.F_DUPFD_CLOEXEC, spawn.ABOVE)
        for place, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, out)):
            os.dup2(descriptor, place)
        spawn.close_all_but((0, 1, 2, verdict))
        spawn.reset_signals()
        os.umask(umask)
        os.chdir(cwd)
        os.execve(argv[0], argv, env)
    except BaseException as error:
        os.write(verdict, str(error).encode("utf-8", "backslashreplace")[:512])
    finally:
        os._exit(127)


def _await(pid: int, output: "_Output", *, told: int, timeout_s: float) -> tuple[int | None, bool]:
    # SIGCHLD has no handler here: the end of the command is seen by its pidfd, or by looking.
    end_s = loop.monotonic_s() + timeout_s
    handle = os.pidfd_open(pid) if system.LINUX else None
    waited = [told] if handle is None else [told, handle]
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status, False
        left_s = end_s - loop.monotonic_s()
        if left_s <= 0:
            return None, True
        patience_s = min(left_s, 3600.0 if handle is not None else 0.05)
        ready, _, _ = select.select([*waited, *output.pipes()], [], [], patience_s)
        if told in ready:
            return None, False
        if output.pipe in ready:
            output.read()


def _sweep(pid: int, status: int | None) -> int | None:
    # What the command left behind ends with it; whoever cannot be killed is left to init.
    tree = proctree.Tree()
    end_s = loop.monotonic_s() + _KILL_BOUND_S
    while True:
        tree.reap(pid)
        if tree.empty() or loop.monotonic_s() >= end_s:
            return tree.statuses.get(pid, status)
        tree.kill()
        loop.pause(0.002)


class _Output:
    """What the command says: into `commands.log`, bounded, and its last lines."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self._open = True
        self._tail = b""
        self._written_bytes = 0
        os.set_blocking(pipe, False)
        self._log = _open_log()

    def pipes(self) -> list[int]:
        return [self.pipe] if self._open else []

    def read(self) -> bool:
        """Take what is there now; False at the end."""
        try:
            data = os.read(self.pipe, 16 * 1024)
        except BlockingIOError:
            return False
        if not data:
            self._open = False
            return False
        self._tail = (self._tail + data)[-_TAIL_BYTES:]
        if self._written_bytes < MAX_OUTPUT_BYTES:
            self._write(data[: MAX_OUTPUT_BYTES - self._written_bytes])
            self._written_bytes += len(data)
        return True

    def drain(self) -> None:
        """Take what was said last."""
        for _ in range(_LAST_READS):
            if not self.read():
                return

    def close(self, words: str) -> None:
        """Note how it ended."""
        lost = self._written_bytes - MAX_OUTPUT_BYTES
        more = f" ({lost} bytes or more of output not kept)" if lost > 0 else ""
        self._write(f"{loop.wall_ns()} {words}{more}\n".encode("utf-8", "backslashreplace"))

    def last_lines(self) -> list[str]:
        lines = self._tail.splitlines()[-LAST_LINES:]
        return [line[-_LINE_BYTES:].decode("utf-8", "replace") for line in lines]

    def _write(self, data: bytes) -> None:
        try:
            if self._log is not None:
                os.write(self._log, data)
        except OSError:
            pass  # a full disk costs the words, not the command


def _open_log() -> int | None:
    try:
        log = os.open(places.COMMANDS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if os.fstat(log).st_size > MAX_LOG_BYTES:
            os.ftruncate(log, 0)
        return log
    except OSError:
        return None
