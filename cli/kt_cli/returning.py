"""Waiting for an engine that went away: the keeper of a living agent brings it back, and failing that, we do."""

import time

from kt_cli import environment, session
from kt_client.errors import ENGINE_LOST, KtError
from kt_client.link import Link
from kt_ledger import exit_codes

KEEPERS_TIME_S = 4.0
"""How long the keepers are left to do it."""

_LOOK_S = 0.1


def wait(again: str) -> None:
    """Return once an engine answers.

    Args:
        again: the command that goes on where this one stopped.

    Raises:
        KtError: exit 1 where the engine was stopped on purpose, or cannot be started.
    """
    layout = environment.state()
    link = Link(layout.engine_socket)
    ends_s = time.monotonic() + KEEPERS_TIME_S
    while not link.answers():
        if layout.engine_stopped.exists():
            raise KtError(
                f"the engine was stopped, the agent need not have: got nobody to ask, wanted an engine; "
                f"go on with: {again}",
                exit_code=exit_codes.FAILED,
                code=ENGINE_LOST,
            )
        if time.monotonic() > ends_s:
            session.ignite(layout)
            return
        time.sleep(_LOOK_S)
