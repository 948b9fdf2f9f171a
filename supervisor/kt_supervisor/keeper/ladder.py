"""The ladder of a stop, sans-io: given what lives, it says whom to signal, and when it is over.

    idle --begin--> asking --time is up--> killing --bound reached--> over (survivors named)
                       \\-- two empty looks --------\\-- two empty looks --> over

asking: TERM once to each process, and CONT behind it, since a stopped process takes no TERM before it continues.
killing: STOP then KILL to each process at every look, so that a tree that forks cannot outrun the looks.
"""

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kt_supervisor.keeper.tree import Process

KILL_BOUND_S = 5.0
"""How long a killed process may take to go: one in an uninterruptible wait may never."""

EMPTY_LOOKS = 2


class Rung(StrEnum):
    """Where a stop has got to."""

    IDLE = "idle"
    ASKING = "asking"
    KILLING = "killing"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal to send."""

    process: Process
    number: int


class Ladder:
    """One Run's stop: asked for by the operator, or by the end of the agent's main process."""

    def __init__(self) -> None:
        self.rung = Rung.IDLE
        self.forced = False
        self.survivors: tuple[int, ...] = ()
        self._until_s = 0.0
        self._asked: set[tuple[int, int]] = set()
        self._empty_looks = 0

    @property
    def climbing(self) -> bool:
        """Whether looks at the tree are wanted."""
        return self.rung in (Rung.ASKING, Rung.KILLING)

    def begin(self, now_s: float, *, timeout_s: float) -> None:
        """Start, or shorten what is under way; a later limit than the present one changes nothing."""
        if self.rung is Rung.IDLE:
            self.rung = Rung.ASKING
            self._until_s = now_s + timeout_s
        elif self.rung is Rung.ASKING:
            self._until_s = min(self._until_s, now_s + timeout_s)

    def look(self, now_s: float, alive: Sequence[Process]) -> list[Signal]:
        """Return whom to signal now, given everything of the Run that is alive."""
        if not self.climbing:
            return []
        self._empty_looks = 0 if alive else self._empty_looks + 1
        if self._empty_looks >= EMPTY_LOOKS:
            self.rung = Rung.OVER
            return []
        if self.rung is Rung.ASKING and now_s >= self._until_s:
            self.rung = Rung.KILLING
            self._until_s = now_s + KILL_BOUND_S
        if self.rung is Rung.ASKING:
            return self._ask(alive)
        if alive and now_s >= self._until_s:
            self.rung = Rung.OVER
            self.survivors = tuple(process.pid for process in alive)
            return []
        self.forced = self.forced or bool(alive)
        stops = [Signal(process, signal.SIGSTOP) for process in alive]
        return stops + [Signal(process, signal.SIGKILL) for process in alive]

    def _ask(self, alive: Sequence[Process]) -> list[Signal]:
        fresh = [process for process in alive if (process.pid, process.ticks) not in self._asked]
        self._asked |= {(process.pid, process.ticks) for process in fresh}
        terms = [Signal(process, signal.SIGTERM) for process in fresh]
        return terms + [Signal(process, signal.SIGCONT) for process in fresh]
