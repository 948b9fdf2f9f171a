"""The one file that reads clocks; everything else takes a `Clock`."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings: the wall for people, the monotonic for durations."""

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 UTC."""
        ...

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 UTC."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back."""
        return time.monotonic_ns()


class ManualClock:
    """A clock that a test moves; both readings advance together."""

    def __init__(self, *, wall_ns: int = 1_800_000_000_000_000_000) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = 0

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._wall_ns += int(seconds * 1e9)
        self._monotonic_ns += int(seconds * 1e9)

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 UTC."""
        return self._wall_ns

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back."""
        return self._monotonic_ns
