"""Named points at which a test lets this process die, and the switch for a slow disk; nothing at all in normal life.

`KT_FAILPOINT=name[:n]` kills the process with SIGKILL when the point is reached for the n-th time (default 1).
`KT_SLOW_SYNC_MS=n` makes each sync of the journal take n milliseconds longer. This is the one file of the gateway
that reads the environment.
"""

import os
import signal

POINTS = frozenset(
    {
        "before_open_record",  # admitted, nothing written
        "after_open_record",  # written, before the upstream is asked for a connection
        "mid_stream",  # a piece of an answer's body was passed on
        "before_close_record",  # the answer's end is in hand, nothing of it is recorded
        "before_close_sync",  # the close record is written and not durable
        "after_close_sync",  # durable, the answer's end is still held
    }
)


class FailpointUnknown(ValueError):
    """The environment names a failpoint that does not exist."""


class Failpoint:
    """A counter that ends the process at the n-th hit of its name."""

    def __init__(self, name: str, hits: int) -> None:
        self.name = name
        self.left = hits

    def hit(self, name: str) -> None:
        """Note that `name` was reached; does not return when it is its turn."""
        if name != self.name:
            return
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def parse(text: str) -> Failpoint | None:
    """Return the failpoint that `text` asks for; None for an empty text.

    Raises:
        FailpointUnknown: no such name, or a count that is not a positive integer.
    """
    if not text:
        return None
    name, _, hits = text.partition(":")
    if name not in POINTS or not (hits or "1").isdigit() or int(hits or "1") < 1:
        raise FailpointUnknown(f"got KT_FAILPOINT={text!r}, wanted name[:n] with a name of {sorted(POINTS)}")
    return Failpoint(name, int(hits or "1"))


def slow_sync_s() -> float:
    """Return the seconds that each sync of the journal shall take longer, 0 normally."""
    return int(os.environ.get("KT_SLOW_SYNC_MS", "0")) / 1000


ARMED = parse(os.environ.get("KT_FAILPOINT", ""))
"""The failpoint of this process; None in normal life. Callers test it before they call it."""
