"""The stop ladder: TERM and CONT, a window, then KILL until nothing is left, or the survivors are named.

A stopped process ignores TERM until it is continued, and no code of its own runs in between (measured), so CONT follows
TERM at once.
"""

import signal
from collections.abc import Callable

from kt_supervisor.keeper import loop, proctree, system

KILL_BOUND_S = 5.0
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.1
_POLL_S = 0.05
_ROUNDS = 8

RESTING, ASKING, KILLING, DONE = "resting", "asking", "killing", "done"


class Ladder:
    """Empties the tree. Call `changed` after every reaping; `done` is called once, when it is over."""

    def __init__(self, events: loop.Loop, tree: proctree.Tree, *, done: Callable[[], None]) -> None:
        self.forced = False
        self.survivors: list[int] = []
        self._loop = events
        self._tree = tree
        self._done = done
        self._state = RESTING
        self._timer: loop.Timer | None = None
        self._deadline_s = 0.0
        self._pause_s = _FIRST_PAUSE_S

    def descend(self, timeout_s: float) -> None:
        """Ask everybody to end and kill who remains after `timeout_s`; again with less: the earlier end counts."""
        deadline_s = self._loop.now_s() + timeout_s
        if self._state == RESTING:
            self._state = ASKING
            self._deadline_s = deadline_s
            if timeout_s > 0:
                self._tree.signal(signal.SIGTERM, signal.SIGCONT)
            self._step()
        elif self._state == ASKING and deadline_s < self._deadline_s:
            self._deadline_s = deadline_s
            self._step()

    def changed(self) -> None:
        """Look again: children were reaped."""
        if self._state in (ASKING, KILLING):
            self._step()

    def _step(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._tree.empty():
            self._finish()
            return
        now_s = self._loop.now_s()
        if self._state == ASKING and now_s >= self._deadline_s:
            self._state = KILLING
            self._deadline_s = now_s + KILL_BOUND_S
        if self._state == KILLING:
            self._kill(now_s)
            return
        left_s = self._deadline_s - now_s
        self._timer = self._loop.after(left_s if system.LINUX else min(left_s, _POLL_S), self._step)

    def _kill(self, now_s: float) -> None:
        if now_s >= self._deadline_s:
            self.survivors = self._tree.living()
            self._finish()
            return
        for _ in range(_ROUNDS):  # a tree that forks is chased without a pause
            if not self._tree.kill():
                break
            self.forced = True
        self._timer = self._loop.after(self._pause_s, self._step)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)

    def _finish(self) -> None:
        self._state = DONE
        self._done()
