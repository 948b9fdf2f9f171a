"""Bringing one agent back: what its policy says about an end, what is due, and letting go of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from kt_ledger.event_documents import PARKED
from kt_ledger.records import InstanceRow, RunRow, State
from kt_manifest.configuration import options
from kt_supervisor.engine.instance import restart_policy
from kt_supervisor.engine.instance.restart_policy import End, History, Policy
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run.ending import Exit

logger = logging.getLogger(__name__)

LIMITED_WITHIN_S = 120.0
"""How long before its exit the provider's last refusal may lie to be taken for the reason of it."""
NOT_BACK = "the machine was restarted, and autostart is off"


class Comebacks:
    """One instance's. What is due is kept in the ledger with the state, so whoever comes next goes on from there."""

    def __init__(self, parts: Parts, row: InstanceRow, *, restart: Callable[[], Awaitable[Any]]) -> None:
        self._parts = parts
        self._id = row.id
        self._name = row.name
        self._restart = restart

    async def policy(self) -> Policy:
        """Return what the operator set; settings that make no sense bring nobody back."""
        try:
            return await asyncio.to_thread(self._parts.settings.restart_policy, self._name)
        except Exception as error:
            # Whatever is wrong with a file that somebody edited, the end of a Run must still be kept.
            logger.error("%s is not brought back: %s", self._name, error)
            return Policy(word=restart_policy.NEVER)

    async def after(
        self,
        row: InstanceRow,
        state: State,
        over: RunRow,
        ended: Exit,
        *,
        rebooted: bool = False,
        began: bool = True,
    ) -> History:
        """Return the history once a Run is over and its instance is in `state`, with the restart that follows.

        `rebooted`: the machine ended it. `began` False: the engine died before there was a process; that is no failure
        of the agent's, and the start is made up for.
        """
        past = History.from_json(row.restart)
        if state is not State.FAILED:
            return replace(past, due=None, parked=None)
        if rebooted:
            return await self._after_boot(past)
        if not began:
            return restart_policy.made_up_for(past, now=self._parts.restarting.now())
        if row.state is State.STARTING and (row.cause or {}).get("kind") != "restarted":
            return History()  # somebody tried to start it, and was told why it did not
        limited, until_ns = await self._limited(over) if ended.spawn_error is None else (False, None)
        uptime_s = max(0, (over.ended_at_ns or 0) - over.started_at_ns) / 1e9
        end = End(
            success=ended.code == 0,
            uptime_s=uptime_s,
            permanent=ended.spawn_error,
            limited=limited,
            limited_until_ns=until_ns,
        )
        moment = self._parts.restarting.now()
        chance = self._parts.restarting.chance()
        return restart_policy.decide(await self.policy(), past, end, now=moment, chance=chance)

    def arm(self, history: History) -> None:
        """Wait for the restart that is due, or for none."""
        self._parts.restarting.arm(self._id, history, self._restart)

    def cancel(self) -> None:
        """Wait for none any more."""
        self._parts.restarting.cancel(self._id)

    async def resume(self, row: InstanceRow) -> None:
        """Go on waiting for what an earlier engine decided."""
        history = History.from_json(row.restart)
        if row.state is not State.FAILED or history.due is None:
            return
        if history.due.at.boot_id != self._parts.restarting.now().boot_id and not await self._autostart():
            history = replace(history, due=None, parked=NOT_BACK)
            await self.keep(history)
        self.arm(history)

    async def park(self, history: History, why: str) -> None:
        """Give up, and say why."""
        logger.error("%s is not brought back: %s", self._name, why)
        await self.keep(replace(history, due=None, parked=why))
        at_ns = self._parts.clock.wall_ns()
        await self._parts.writer.do(lambda store: store.add_event(PARKED, self._id, {"why": why}, at_ns))

    async def keep(self, history: History) -> None:
        """Keep a history without a change of state."""
        document = history.to_json()
        await self._parts.writer.do(lambda store: store.set_restart(self._id, document))
        self._parts.settings.restarts(self._name, document)

    async def _after_boot(self, past: History) -> History:
        if not await self._autostart():
            return replace(past, due=None, parked=NOT_BACK)
        restarting = self._parts.restarting
        return restart_policy.after_boot(past, now=restarting.now(), chance=restarting.chance())

    async def _autostart(self) -> bool:
        try:
            return await asyncio.to_thread(self._parts.settings.is_on, self._name, options.AUTOSTART)
        except Exception as error:
            # As for the policy: the end of a Run must still be kept.
            logger.error("%s is not brought back: %s", self._name, error)
            return False

    async def _limited(self, over: RunRow) -> tuple[bool, int | None]:
        """Tell whether the provider's rate limit was the last that the Run heard, and until when it said."""
        if self._parts.listeners.port(self._id) is None:
            return False, None  # nobody saw its calls
        await self._parts.listeners.link.flush()
        await self._parts.journals.fold()
        found = await self._parts.writer.do(lambda store: store.last_limited(over.id))
        if found is None or (over.ended_at_ns or 0) - found.ended_at_ns > LIMITED_WITHIN_S * 1e9:
            return False, None
        return True, found.retry_at_ns
