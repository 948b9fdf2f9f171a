"""Whose turn it is to work on the disk: one thread at a time, and the next one where it hangs in a sync for good.

A thread cannot be pulled out of a system call. One that hangs is left to itself; when it comes back it finds that it
is not its turn any more, gives back what it holds, and ends. Everything here is called under its owner's lock.
"""

import threading
import time
from collections.abc import Callable

SUPERSEDED_LIMIT = 4
"""Threads that may hang at a time; with so many the disk is gone, and the last one waits for it."""


class Turns:
    """The threads of one journal."""

    def __init__(self, run: Callable[[int], None]) -> None:
        """Start the first thread; each runs `run(turn)`."""
        self._run = run
        self._hanging = 0
        self._busy_since_s: float | None = None
        self.current = 0
        self._thread = self._start()

    def pass_on(self) -> bool:
        """Let another thread go on in the place of one that hangs; False where too many hang already."""
        if self._hanging >= SUPERSEDED_LIMIT:
            return False
        self._hanging += 1
        self.current += 1
        self._busy_since_s = None
        self._thread = self._start()
        return True

    def is_over(self, turn: int) -> bool:
        """Tell, as a thread's last question, whether another has gone on in its place."""
        superseded = turn != self.current
        self._hanging -= superseded
        return superseded

    def busy(self, turn: int, *, begins: bool) -> None:
        """Note that a thread begins, or has ended, what may hang."""
        if turn == self.current:
            self._busy_since_s = time.monotonic() if begins else None

    def hangs(self, limit_s: float) -> bool:
        """Tell whether the thread whose turn it is has been busy for so long."""
        return self._busy_since_s is not None and time.monotonic() - self._busy_since_s >= limit_s

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread whose turn it is; tell whether it has ended. Not under the lock."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(self.current,), name="journal", daemon=True)
        thread.start()
        return thread
