"""Spawning: the agent, and an engine to replace one that died. Fork and exec, from a process with one thread."""

import errno
import os
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kt_supervisor.keeper import tree
from kt_supervisor.keeper.spec import Spec

_ERRNO = struct.Struct("<iB")
_STEPS = {1: "its working directory", 2: "the program"}


@dataclass(frozen=True, slots=True)
class Pipes:
    """Our ends of the agent's standard streams; `stdin_keep` holds the FIFO open both ways, so that it never ends."""

    out: int
    err: int
    stdin_keep: int | None


class SpawnFailed(Exception):
    """The agent's program could not be started; the message names the step and the system's reason."""


def spawn_agent(spec: Spec, *, lock: int, note: Callable[[int], None]) -> tuple[int, Pipes]:
    """Start the agent in a session of its own; return its pid and our ends of its streams.

    The child gets descriptors 0, 1, 2 and the lock, default signal actions and an empty signal mask. It waits until
    `note`, which is given its pid, has returned: no agent runs that is not on record.

    Raises:
        SpawnFailed: nothing runs.
    """
    stdin, keep = _stdin(spec)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    told_read, told_write = os.pipe()
    gate_read, gate_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(gate_write)
        if not os.read(gate_read, 1):
            os._exit(127)  # the keeper died before it had written us down
        _become_agent(spec, stdin, out_write, err_write, lock, told_write)
    note(pid)
    os.write(gate_write, b"1")
    for descriptor in (stdin, out_write, err_write, told_write, gate_read, gate_write):
        os.close(descriptor)
    told = os.read(told_read, _ERRNO.size)
    os.close(told_read)
    if told:
        os.waitpid(pid, 0)
        for descriptor in (out_read, err_read, *([keep] if keep is not None else [])):
            os.close(descriptor)
        number, step = _ERRNO.unpack(told)
        raise SpawnFailed(_explain(spec, number, step))
    for descriptor in (out_read, err_read):
        os.set_blocking(descriptor, False)
    return pid, Pipes(out_read, err_read, keep)


def spawn_engine(spec: Spec) -> None:
    """Start an engine that is nobody's child here, so that our sweep never takes it for a part of the agent.

    A subreaper inherits its own orphans; it stops being one for the two forks. An orphan of the agent that is born in
    that moment is still found by the Run's name in its environment.
    """
    tree.become_subreaper(False)
    try:
        between = os.fork()
        if between == 0:
            _become_engine(spec)
        os.waitpid(between, 0)
    finally:
        tree.become_subreaper(True)


def _stdin(spec: Spec) -> tuple[int, int | None]:
    if not spec.interactive:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), None
    fifo = spec.files.stdin
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo, 0o600)
    keep = os.open(fifo, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    return os.open(fifo, os.O_RDONLY | os.O_CLOEXEC), keep


def _become_agent(spec: Spec, stdin: int, out: int, err: int, lock: int, told: int) -> None:
    step = 1
    try:
        os.setsid()
        _default_signals()
        # The three may overlap 0-2 when the keeper itself was started with one of them closed: lift them first.
        high = [os.dup(descriptor) for descriptor in (stdin, out, err)]
        for target, descriptor in enumerate(high):
            os.dup2(descriptor, target, inheritable=True)
            os.close(descriptor)
        os.set_inheritable(lock, True)
        os.umask(spec.umask)
        os.chdir(spec.cwd)
        step = 2
        os.execve(spec.argv[0], list(spec.argv), spec.env)
    except OSError as error:
        os.write(told, _ERRNO.pack(error.errno or errno.EINVAL, step))
    except BaseException:
        os.write(told, _ERRNO.pack(errno.EINVAL, step))
    finally:
        os._exit(127)


def _become_engine(spec: Spec) -> None:
    try:
        if os.fork():
            os._exit(0)
        os.setsid()
        _default_signals()
        null = os.open("/dev/null", os.O_RDWR)
        log = os.open(spec.state.engine_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for target, descriptor in ((0, null), (1, log), (2, log)):
            os.dup2(descriptor, target, inheritable=True)
        os.chdir("/")
        os.execve(spec.engine_command[0], list(spec.engine_command), spec.engine_env)
    finally:
        os._exit(127)


def _default_signals() -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except OSError:
            continue  # reserved by the C library
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _explain(spec: Spec, number: int, step: int) -> str:
    what = spec.cwd if step == 1 else spec.argv[0]
    hint = {
        errno.ENOENT: "is it installed, and is its interpreter (the line after #!)?",
        errno.EACCES: "is it executable, and may this user reach it?",
        errno.ENOEXEC: "a script wants #! and its interpreter in its first line",
        errno.E2BIG: "its arguments and environment are too large together",
    }.get(number, "look at its file and folder")
    return f"cannot start {_STEPS.get(step, 'the program')}: {Path(what)}: {os.strerror(number)} — {hint}"
