"""The stop ladder: a declared command, TERM and CONT, a window, then KILL until nothing is left or survivors are named.

A stopped process ignores TERM until it is continued, and no code of its own runs in between (measured), so CONT follows
TERM at once.
"""

import signal
from collections.abc import Callable

from kt_supervisor.keeper import commands, freeze, loop, proctree, requests

KILL_BOUND_S = 5.0
COMMAND_GRACE_S = 1.0
"""How long a command may still run once the tree is empty: `docker stop` returns a little after its client."""

_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.1
_POLL_S = 0.05
_ROUNDS = 8

RESTING, COMMANDED, ASKING, KILLING, DONE = "resting", "commanded", "asking", "killing", "done"


Told = dict[str, object]
StartCommand = Callable[[float, Callable[[Told], None]], None]


class Ladder:
    """Empties the tree. Call `changed` after every reaping; `done` is called once, when it is over."""

    def __init__(
        self,
        events: loop.Loop,
        tree: proctree.Tree,
        *,
        freezer: freeze.Freezer,
        beside: commands.Commands,
        done: Callable[[], None],
    ) -> None:
        self.forced = False
        self.survivors: list[int] = []
        self.command: Told | None = None
        self._loop = events
        self._tree = tree
        self._freezer = freezer
        self._beside = beside
        self._done = done
        self._state = RESTING
        self._timer: loop.Timer | None = None
        self._ask_s = 0.0
        self._deadline_s = 0.0
        self._commands_end_s: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    def descend(self, timeout_s: float, *, command: StartCommand | None = None) -> None:
        """Ask everybody to end and kill who remains after `timeout_s`; again with less: the earlier end counts.

        `command(limit, over)` starts a stop command, which has half of the window before TERM follows.
        """
        now_s = self._loop.now_s()
        if self._state == RESTING:
            self._beside.end()
            self._deadline_s = now_s + timeout_s
            if command is not None and timeout_s > 0:
                self._state = COMMANDED
                self._ask_s = now_s + timeout_s / 2
                self._freezer.thaw()  # a command that asks the agent needs it awake
                command(timeout_s, self._commanded)
            else:
                self._ask(killing=timeout_s <= 0)
            self._step()
        elif self._state in (COMMANDED, ASKING) and now_s + timeout_s < self._deadline_s:
            self._deadline_s = now_s + timeout_s
            self._ask_s = min(self._ask_s, now_s + timeout_s / 2)
            self._step()

    def changed(self) -> None:
        """Look again: children were reaped."""
        if self._state in (COMMANDED, ASKING, KILLING):
            self._step()

    def _commanded(self, told: Told) -> None:
        self.command = {field: told.get(field) for field in ("code", "signal", "timed_out", "error")}
        succeeded = told["code"] == 0
        if self._state == COMMANDED and not succeeded:
            self._ask()

    def _ask(self, *, killing: bool = False) -> None:
        self._state = ASKING
        if killing:
            self._freezer.forget()  # KILL needs nobody awake
            return
        self._tree.signal(signal.SIGTERM)
        # Thawed only now: whoever was frozen finds TERM before it runs any code of its own.
        self._freezer.thaw()
        self._tree.signal(signal.SIGCONT)

    def _step(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_s = self._loop.now_s()
        if self._empty(now_s):
            self._finish()
            return
        if self._state == COMMANDED and self._ask_s <= now_s < self._deadline_s and not self._tree.empty():
            self._ask()
        if self._state in (COMMANDED, ASKING) and now_s >= self._deadline_s:
            self._state = KILLING
            self._beside.end()
            self._deadline_s = now_s + KILL_BOUND_S
        if self._state == KILLING:
            self._kill(now_s)
            return
        self._timer = self._loop.after(self._patience_s(now_s), self._step)

    def _empty(self, now_s: float) -> bool:
        if not self._tree.empty():
            return False
        if not self._beside.running():
            return True
        if self._commands_end_s is None:
            self._commands_end_s = now_s + COMMAND_GRACE_S
        elif now_s >= self._commands_end_s:
            self._beside.end()
        return False

    def _patience_s(self, now_s: float) -> float:
        ends = [self._deadline_s]
        if self._state == COMMANDED and self._ask_s > now_s:
            ends.append(self._ask_s)
        if self._commands_end_s is not None and self._commands_end_s > now_s:
            ends.append(self._commands_end_s)
        if not self._tree.told:
            ends.append(now_s + _POLL_S)
        return max(0.0, min(ends) - now_s)

    def _kill(self, now_s: float) -> None:
        if now_s >= self._deadline_s:
            self.survivors = self._tree.living()
            self._finish()
            return
        if now_s >= self._deadline_s - KILL_BOUND_S / 2:
            self._beside.kill()  # told to end, and still there
        for _ in range(_ROUNDS):  # a tree that forks is chased without a pause
            if not self._tree.kill():
                break
            self.forced = True
        self._timer = self._loop.after(self._pause_s, self._step)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)

    def _finish(self) -> None:
        self._state = DONE
        self._done()


def by_command(
    beside: commands.Commands, command: requests.Command, *, note: Callable[[str], None]
) -> StartCommand:
    """Return what starts a declared stop command and tells how it ended."""

    def start(timeout_s: float, over: Callable[[Told], None]) -> None:
        def done(told: Told) -> None:
            note(f"the stop command ended: code {told['code']}, {told['error'] or 'no error'}")
            over(told)

        try:
            beside.start(command, timeout_s=timeout_s, done=done)
        except requests.RequestInvalid as error:
            note(str(error))
            over({"code": None, "error": str(error)})

    return start
