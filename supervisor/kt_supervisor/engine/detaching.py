"""Becoming nobody's child: a program that needs an engine must neither have a child nor reap one.

The process that was started forks and waits: it ends with 0 once the engine serves, or with the engine's own code
where it ends before that. Call it before any thread exists.
"""

import os
from collections.abc import Callable


def nobody_waits() -> None:
    """Announce to nobody."""


def detach() -> Callable[[], None]:
    """Return, in a child of this process, what says that the engine serves; this process never returns."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        os._exit(_outcome(reading, pid))
    os.close(reading)

    def announce() -> None:
        try:
            os.write(writing, b"1")
        except BrokenPipeError:
            pass  # whoever started us was killed meanwhile
        os.close(writing)

    return announce


def _outcome(reading: int, pid: int) -> int:
    if os.read(reading, 1):
        return 0
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
