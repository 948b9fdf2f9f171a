"""The time that a section has, and waiting within it."""

import threading
import time
from collections.abc import Callable

from kt_conformance.report import SectionFailed

_LOOK_EVERY_S = 0.02
_MOMENT = threading.Event()


class Deadline:
    """So much time, from now on."""

    def __init__(self, within_s: float) -> None:
        self._ends_s = time.monotonic() + within_s
        self.within_s = within_s

    @property
    def left_s(self) -> float:
        """How much is left; never below 0."""
        return max(self._ends_s - time.monotonic(), 0.0)

    def until[T](self, claim: Callable[[], T | None], what: str, *, within_s: float | None = None) -> T:
        """Return the first true answer of `claim`.

        Raises:
            SectionFailed: there was none within `within_s`, or within what is left; it says `what` was waited for.
        """
        limit_s = self.left_s if within_s is None else min(within_s, self.left_s)
        if (answer := self.wait(claim, within_s=limit_s)) is None:
            raise SectionFailed(f"got nothing within {limit_s:.0f} s, wanted {what}")
        return answer

    def wait[T](self, claim: Callable[[], T | None], *, within_s: float) -> T | None:
        """Return the first true answer of `claim`, or None where there was none within `within_s`."""
        ends_s = min(time.monotonic() + within_s, self._ends_s)
        while not (answer := claim()):
            if time.monotonic() >= ends_s:
                return None
            _MOMENT.wait(_LOOK_EVERY_S)
        return answer

    def watch(self, claim: Callable[[], str | None], *, for_s: float) -> None:
        """Look at something that must not happen, for so long.

        Raises:
            SectionFailed: with the first thing that `claim` says.
        """
        if (seen := self.wait(claim, within_s=for_s)) is not None:
            raise SectionFailed(seen)
