"""A gateway that lives and does not answer: after a while it is ended, so that another can take its place.

It passes nothing on, whatever it still holds: its agents' calls hang with it. A busy one answers within milliseconds.
"""

import asyncio
import logging
import signal

from kt_ledger import process_identity
from kt_ledger.layout import GatewayLayout
from kt_supervisor.engine.gateway.client import GatewayAway, GatewayClient
from kt_supervisor.engine.run import adoption, run_records
from kt_supervisor.keeper import proctree

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
ANSWER_TIMEOUT_S = 10.0
PATIENCE = 3
"""How many questions in a row may stay without an answer: more than half a minute in all."""


class Health:
    """Counts the questions that stayed without an answer, over connections."""

    def __init__(self, files: GatewayLayout) -> None:
        self._files = files
        self._silent = 0

    def answered(self) -> None:
        """Note that it answered."""
        self._silent = 0

    async def silent(self) -> bool:
        """Note that it did not; end it, and return True, where that was once too often."""
        self._silent += 1
        if self._silent < PATIENCE:
            return False
        self._silent = 0
        return await asyncio.to_thread(end_hung, self._files)

    async def watch(self, client: GatewayClient) -> None:
        """Ask again and again; returns once it had to be ended. Whoever follows it sees it go."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await client.status(timeout_s=ANSWER_TIMEOUT_S)
            except GatewayAway:
                if await self.silent():
                    return
            else:
                self.answered()


def end_hung(files: GatewayLayout) -> bool:
    """Kill the gateway of the record, where it is exactly that process; return whether it was."""
    record = run_records.read_json(files.record) or {}
    process = adoption.exactly(record.get("pid"), record.get("start_ticks"))
    if process is None or record.get("boot_id") != process_identity.boot_id():
        return False
    logger.error("gateway (process %s) does not answer and is ended; another follows", process.pid)
    proctree.send(process, signal.SIGKILL)
    return True
