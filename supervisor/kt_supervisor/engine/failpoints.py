"""Named points at which a test lets this engine die; nothing at all in normal life.

`KT_ENGINE_FAILPOINT=point:agent` kills the engine with SIGKILL when it comes to that point with that agent. The gateway
has its own (`kt_gateway.failpoints`), under another variable: it is started with the engine's.
"""

import os
import signal

from kt_supervisor.engine import environment

POINTS = frozenset(
    {
        "removal_intended",  # the intent is written, the ledger still has the name
        "removal_kept",  # the ledger has freed the name, nothing is deleted yet
        "removal_home_moved",  # the Home is out of the way, where it shall go
        "removal_moved",  # the output as well, environments/ and started/ are gone
        "removal_marked",  # the intent says so
        "removal_deleted",  # everything is gone but the intent
    }
)


def reached(point: str, agent: str) -> None:
    """Note that a point was reached with an agent; does not return where these are the ones."""
    assert point in POINTS, point
    if environment.failpoint() == f"{point}:{agent}":
        os.kill(os.getpid(), signal.SIGKILL)
