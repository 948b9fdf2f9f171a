"""How the keeper takes its place: apart from its starter, with its locks, as the one that orphans fall to."""

import fcntl
import os
import signal

from kt_supervisor.keeper import spawn, system


def above(descriptor: int) -> int:
    """Move a descriptor out of the way of 0, 1 and 2, even where the starter had closed those."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, spawn.ABOVE)
    os.close(descriptor)
    return moved


def locked(lock: int) -> bool:
    """Take a lock without waiting; False where somebody has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def take_place(kept: tuple[int, ...]) -> None:
    """Begin a session of our own with only the descriptors in `kept`, and become what the agent's orphans fall to."""
    try:
        os.setsid()
    except PermissionError:
        pass  # started as a leader already
    spawn.close_all_but(kept)
    for descriptor in kept[3:]:
        os.set_inheritable(descriptor, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    system.become_subreaper(True)
    system.hide_memory()


def leave_starter(log: int) -> None:
    """Let go of the starter's standard streams: what is said from here on goes to `log`."""
    null = os.open(os.devnull, os.O_RDONLY)
    for place, descriptor in enumerate((null, log, log)):
        os.dup2(descriptor, place)
    os.close(null)
