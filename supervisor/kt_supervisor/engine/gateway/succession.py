"""When one gateway follows another: after an upgrade, without cutting an answer and without refusing a call.

The older one drains: it stops accepting, makes way, and ends once the answers under way have. The next one borrows the
listening sockets from the keepers of live Runs, where callers queue meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from kt_ledger.layout import GatewayLayout
from kt_ledger.messages import Status
from kt_ledger.version import VERSION
from kt_supervisor.engine import state_dir
from kt_supervisor.engine.gateway.client import GatewayAway, GatewayClient
from kt_supervisor.engine.tasks import Tasks

logger = logging.getLogger(__name__)

DRAIN_S = 6 * 3600.0
"""How long answers under way may go on: longer than any provider streams one."""
LOOK_AGAIN_S = 1.0
LOOK_S = 0.02


def is_other(status: Status) -> bool:
    """Tell whether a gateway is of another version than this engine."""
    return status.version != VERSION


async def make_way(files: GatewayLayout, status: Status, *, may: Callable[[], bool], tasks: Tasks) -> None:
    """Return once the gateway of another version accepts nothing any more and the next one may begin.

    Args:
        files: the gateway's files.
        status: who it is.
        may: whether its successor can be given everything that it knows; asked until it says so.
        tasks: where its draining goes on, for as long as answers are under way.
    """
    told = False
    while not may():  # settings, secrets and Runs decide it: no one event does
        if not told:
            logger.warning(
                "gateway %s stays at version %s for now: a provider's key is known to it alone; it is followed by one "
                "of version %s once the agents that use it were started again",
                status.incarnation,
                status.version,
                VERSION,
            )
            told = True
        await asyncio.sleep(LOOK_AGAIN_S)
    logger.info(
        "gateway %s (version %s) drains: one of version %s follows",
        status.incarnation,
        status.version,
        VERSION,
    )
    tasks.start(f"draining gateway {status.incarnation}", _drain(files.admin, status.incarnation))
    while state_dir.is_held(files.lock):  # noqa: ASYNC110  # the kernel tells nobody that a lock is free
        await asyncio.sleep(LOOK_S)


async def _drain(admin: Path, incarnation: str) -> None:
    try:
        async with GatewayClient(admin) as client:
            if (await client.status()).incarnation == incarnation:
                await client.drain(DRAIN_S)
    except GatewayAway as error:
        logger.warning("the older gateway ended while it drained: %s", error)
