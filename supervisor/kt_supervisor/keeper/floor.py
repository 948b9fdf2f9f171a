"""A floor under the free disk space: what an agent says must not take the room that the ledger needs.

It is looked at while output flows, at most once per MiB or second, so a quiet agent costs nothing; once low, every
second until there is an eighth more than the floor.
"""

import os
from collections.abc import Callable

from kt_supervisor.keeper import loop

LOOK_BYTES = 1024 * 1024
LOOK_S = 1.0


class Floor:
    """Tells when the free space of the working directory's disk falls below `floor_bytes`, and when it is back."""

    def __init__(self, events: loop.Loop, floor_bytes: int, *, changed: Callable[[bool], None]) -> None:
        """`changed(low)` is called at each turn. A floor of 0 never tells anything."""
        self.low = False
        self._loop = events
        self._floor_bytes = floor_bytes
        self._changed = changed
        self._looked_s: float | None = None
        self._spent_bytes = 0
        self._timer: loop.Timer | None = None

    def spent(self, written_bytes: int) -> None:
        """Say that output was written; looks when it is time to."""
        if not self._floor_bytes or self.low:
            return
        self._spent_bytes += written_bytes
        now_s = self._loop.now_s()
        if self._looked_s is not None and self._spent_bytes < LOOK_BYTES and now_s < self._looked_s + LOOK_S:
            return
        self._looked_s, self._spent_bytes = now_s, 0
        if free_bytes() < self._floor_bytes:
            self.low = True
            self._timer = self._loop.after(LOOK_S, self._look_again)
            self._changed(True)

    def lift(self) -> None:
        """Have no floor any more: an agent that ends may use the rest for its last words."""
        self._floor_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
        if self.low:
            self.low = False
            self._changed(False)

    def _look_again(self) -> None:
        if free_bytes() < self._floor_bytes + self._floor_bytes // 8:
            self._timer = self._loop.after(LOOK_S, self._look_again)
            return
        self.low = False
        self._changed(False)


def free_bytes() -> int:
    """Return what this user may still write to the disk of the working directory."""
    found = os.statvfs(".")
    return found.f_bavail * found.f_frsize
