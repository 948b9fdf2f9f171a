"""What an engine that has just begun knows of an instance's listener: its provider, found without a caller.

The gateway serves what is remembered here; an error in the settings leaves the listener of a live Run as it is.
"""

import asyncio
import logging

from kt_ledger.records import InstanceRow, RunRow
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run import known_provider

logger = logging.getLogger(__name__)


async def of_a_run(parts: Parts, row: InstanceRow, run: RunRow | None) -> None:
    """Remember the listener of an instance whose Run goes on; without a Run its calls are refused."""
    try:
        entries = await asyncio.to_thread(parts.settings.of_the_run, row)
        provider = await asyncio.to_thread(known_provider.find, parts.files, entries, environment={})
    except Exception as error:
        # Settings that somebody broke by hand must not close the listener of an agent that runs.
        logger.warning("the listener of %s is left as it is: %s", row.name, error)
        parts.listeners.leave_alone(row.id)
        return
    if provider is not None:
        parts.listeners.remember(row, provider, run)


async def of_nobody(parts: Parts, row: InstanceRow) -> None:
    """Remember the listener of an instance that does not run; no keyring is asked, since nothing is going to call."""
    try:
        entries = await asyncio.to_thread(parts.settings.of_the_run, row)
        provider = await asyncio.to_thread(
            known_provider.find, parts.files, entries, environment={}, keyring=False
        )
    except Exception as error:
        # Whatever somebody broke by hand, an engine that comes up must remember the other agents.
        logger.warning("%s has no listener: %s", row.name, error)
        return
    if provider is not None:
        parts.listeners.remember(row, provider, None)
