"""How the agent is born: forked, held at a gate until its record is on disk, then exec'd with nothing of ours.

It gets descriptors 0, 1, 2 and the Run's lock at 3, a session and group of its own, default signals, an empty mask, its
working directory, and exactly the environment it was given.
"""

import errno
import fcntl
import os
import signal

from kt_supervisor.keeper import specification

LOCK_DESCRIPTOR = 3
ABOVE = 10
_GATE_CLOSED = 126
_NOT_STARTED = 127


class Child:
    """A process between fork and exec. Descriptors are the keeper's ends; `start_ticks` is its kernel start time."""

    __slots__ = ("err", "gate", "out", "pid", "verdict")

    def __init__(self, pid: int, *, gate: int, verdict: int, out: int, err: int) -> None:
        self.pid = pid
        self.gate = gate
        self.verdict = verdict
        self.out = out
        self.err = err

    def release(self) -> None:
        """Let it exec. Afterwards `verdict` reads empty when it did, or what `why` explains."""
        os.write(self.gate, b"g")
        os.close(self.gate)

    def abandon(self) -> None:
        """Let it end without exec, and close everything."""
        for descriptor in (self.gate, self.verdict, self.out, self.err):
            os.close(descriptor)


def fork(spec: specification.Specification, *, lock: int, stdin: int, umask: int) -> Child:
    """Return a child that waits at its gate. `stdin` stays the caller's to close.

    Raises:
        OSError: no descriptors or no processes left; nothing was started.
    """
    pipes: list[int] = []
    try:
        for _ in range(4):
            pipes += os.pipe()
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if not pid:
                _child(spec, (stdin, pipes[1], pipes[3], lock), gate=pipes[4], verdict=pipes[7], umask=umask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    except OSError:
        for descriptor in pipes:
            os.close(descriptor)
        raise
    for descriptor in (pipes[1], pipes[3], pipes[4], pipes[7]):
        os.close(descriptor)
    return Child(pid, out=pipes[0], err=pipes[2], gate=pipes[5], verdict=pipes[6])


def why(spec: specification.Specification, verdict: bytes) -> str:
    """Return in words what kept the agent from starting."""
    try:
        step, _, code = verdict.decode().partition(" ")
        number = int(code)
    except ValueError:
        return f"{spec.argv[0]}: could not be started: {verdict!r}"
    reason = f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"
    if step == "chdir":
        return f"{spec.cwd}: {reason}; wanted a working directory that exists and can be entered"
    if number == errno.ENOENT and os.access(spec.argv[0], os.F_OK):
        return f"{spec.argv[0]}: {reason}; the file is there, but the interpreter its first line names is not"
    if number == errno.ENOEXEC:
        return (
            f"{spec.argv[0]}: {reason}; wanted a program of this machine, or a script whose first line is #!"
        )
    return f"{spec.argv[0]}: {reason}; wanted an executable file"


def _child(
    spec: specification.Specification, inherited: tuple[int, ...], *, gate: int, verdict: int, umask: int
) -> None:
    step = "prepare"
    try:
        os.setsid()
        moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, ABOVE) for descriptor in inherited]
        gate = fcntl.fcntl(gate, fcntl.F_DUPFD_CLOEXEC, ABOVE)
        verdict = fcntl.fcntl(verdict, fcntl.F_DUPFD_CLOEXEC, ABOVE)
        for place, descriptor in enumerate(moved):
            os.dup2(descriptor, place)
        # An end of the gate held here would hide the keeper's death.
        close_all_but((*range(LOCK_DESCRIPTOR + 1), gate, verdict))
        reset_signals()
        os.umask(umask)
        if not os.read(gate, 1):
            os._exit(_GATE_CLOSED)
        step = "chdir"
        os.chdir(spec.cwd)
        step = "exec"
        os.execve(spec.argv[0], spec.argv, spec.env)
    except OSError as error:
        os.write(verdict, f"{step} {error.errno}".encode())
    except BaseException as error:
        os.write(verdict, f"{step}: {error}".encode()[:512])
    finally:
        os._exit(_NOT_STARTED)


def reset_signals() -> None:
    """Give every signal its default disposition, then unblock all (the order lets a pending TERM end us)."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def close_all_but(kept: tuple[int, ...]) -> None:
    """Close every descriptor of this process that is not in `kept`."""
    first = 0
    for descriptor in sorted(kept):
        if first < descriptor:  # os.closerange(0, 0) closes everything
            os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))
