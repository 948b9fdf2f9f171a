"""Telling of settings that somebody broke by hand: one event when that is seen, one when it is over.

Looked at every few seconds, which costs a look at two files an instance; whoever asks for settings meanwhile sees the
alarm anyway.
"""

import asyncio
import logging
from typing import Any

from kt_ledger.event_documents import CONFIGURATION
from kt_manifest.configuration import layers
from kt_supervisor.engine.instance.current_settings import Alarm
from kt_supervisor.engine.parts import Parts

logger = logging.getLogger(__name__)

Told = dict[str | None, frozenset[Alarm]]


class SettingsWatch:
    """Remembers which alarms were told, of the fleet (None) and of each instance by its id."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._told: Told = {}

    async def look(self) -> None:
        """Tell what has changed since the last look. Raises StoreUnavailable: it is told at the next."""
        now = await asyncio.to_thread(self._alarms)
        for whose in now.keys() | self._told.keys():
            before, alarms = self._told.get(whose, frozenset()), now.get(whose, frozenset())
            for alarm in sorted(alarms - before, key=lambda alarm: alarm.message):
                logger.error("%s%s", alarm.message, alarm.in_force)
                await self._tell(whose, {"change": "alarm", **alarm.to_json()})
            if whose in now:
                for alarm in sorted(before - alarms, key=lambda alarm: alarm.message):
                    facts = {"layer": alarm.layer, "key": alarm.key}
                    await self._tell(whose, {"change": "alarm-over", **facts})
            self._told[whose] = alarms
        self._told = {whose: alarms for whose, alarms in self._told.items() if whose in now}

    async def _tell(self, whose: str | None, facts: dict[str, Any]) -> None:
        at_ns = self._parts.clock.wall_ns()
        await self._parts.writer.do(lambda store: store.add_event(CONFIGURATION, whose, facts, at_ns))

    def _alarms(self) -> Told:
        found: Told = {None: frozenset(self._parts.settings.of_fleet().alarms)}
        for name in self._parts.settings.names():
            row = self._parts.settings.row(name)
            if row is not None:
                alarms = self._parts.settings.of(name).alarms
                found[row.id] = frozenset(alarm for alarm in alarms if alarm.layer != layers.FLEET)
        return found
