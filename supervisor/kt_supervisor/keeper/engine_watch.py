"""Bringing a dead engine back: when to start one, as a small machine without a clock of its own.

An engine is wanted while none has said hello, unless the marker says that it was stopped on purpose. Tries are spaced
by a back-off from 0.2 s, doubling to 30 s, with a spread by keeper, so that many keepers do not start many engines in
one moment; where they do, the engine's lock elects one.
"""

FIRST_S = 0.2
LONGEST_S = 30.0


class EngineWatch:
    """Decides when to start an engine. `spread`: 0 to 1, this keeper's share of the spread."""

    def __init__(self, *, now_s: float, wait_s: float, spread: float) -> None:
        self._spread = spread
        self._pause_s = FIRST_S
        self._next_s: float | None = now_s + wait_s

    def engine_came(self) -> None:
        """Note that an engine said hello."""
        self._next_s = None
        self._pause_s = FIRST_S

    def engine_went(self, now_s: float) -> None:
        """Note that the engine's connection ended."""
        if self._next_s is None:
            self._next_s = now_s + self._pause_s * self._spread

    def deadline_s(self) -> float | None:
        """Return when `is_due` is to be asked; None while an engine is there."""
        return self._next_s

    def is_due(self, now_s: float) -> bool:
        """Return whether to start an engine now; counts as a try."""
        if self._next_s is None or now_s < self._next_s:
            return False
        self._next_s = now_s + self._pause_s * (1 + self._spread)
        self._pause_s = min(2 * self._pause_s, LONGEST_S)
        return True
