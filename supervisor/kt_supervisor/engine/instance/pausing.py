"""Pausing and resuming one instance: its calls are held at the gateway, and where it can be promised, it is frozen."""

import asyncio
import logging
from typing import Any

from kt_ledger.exit_codes import UNSUPPORTED, WRONG_STATE
from kt_ledger.records import InstanceRow, State
from kt_manifest.configuration import options
from kt_manifest.contract import capability
from kt_manifest.contract.capability import Level
from kt_manifest.contract.snapshot import Adapter, Template
from kt_supervisor.engine.instance import lifecycle
from kt_supervisor.engine.instance.lifecycle import Event
from kt_supervisor.engine.instance.supervision import Supervision
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import Refused
from kt_supervisor.engine.run import launching
from kt_supervisor.engine.run.current_run import CurrentRun
from kt_supervisor.engine.run.keeper_link import KeeperGone

logger = logging.getLogger(__name__)

COMMAND_TIMEOUT_S = 10.0
BEST_EFFORT = "its calls are held at the gateway; its processes go on"
NOTHING_TO_HOLD = "got a best-effort pause of an agent without a listener, which holds nothing back"


class Pausing:
    """One instance's pauses; everything is called under its lock."""

    def __init__(self, parts: Parts, life: Supervision) -> None:
        self._parts = parts
        self._life = life

    async def pause(self, row: InstanceRow) -> dict[str, Any]:
        """Hold its calls, then freeze it where its adapter promises that. Kept first, so that a crash heals.

        Raises:
            InvalidTransition; Refused: not supported on this system (exit code 5).
        """
        lifecycle.step(row.name, state=row.state, event=Event.PAUSE)
        level = self._level(row)
        if level is Level.UNSUPPORTED:
            raise Refused(
                f"cannot pause {row.name}: got an adapter that declares pause unsupported on {capability.this_os()}, "
                f"wanted guaranteed or best-effort; stop it with `kt agent stop {row.name}`",
                code="capability_unsupported",
                exit_code=UNSUPPORTED,
            )
        adapter = Adapter.from_json(row.adapter)
        if level is not Level.GUARANTEED and self._parts.listeners.port(row.id) is None and not adapter.pause:
            raise Refused(
                f"cannot pause {row.name}: {NOTHING_TO_HOLD}; wanted an adapter that promises it, or a listener; stop "
                f"it with `kt agent stop {row.name}`",
                code="nothing_to_pause",
                exit_code=UNSUPPORTED,
            )
        cause: dict[str, Any] = {"kind": "command", "command": "pause"}
        notices = []
        if level is not Level.GUARANTEED:
            detail = BEST_EFFORT
            cause = {"kind": "pause-best-effort", "detail": detail}
            notices.append(f"best effort: {detail}")
        row = await self._life.move(row, Event.PAUSE, cause, desired="paused")
        notices += await self._act(row, level)
        if self._life.trouble is not None:
            raise Refused(
                f"the pause of {row.name} is not confirmed: got {self._life.trouble}; its calls are held, and it is "
                "frozen once that is so",
                code="pause_unconfirmed",
                exit_code=WRONG_STATE,
            )
        return {"name": row.name, "state": str(row.state), "level": str(level), "notices": notices}

    async def resume(self, row: InstanceRow) -> dict[str, Any]:
        """Thaw it, then let its calls go. Raises InvalidTransition."""
        lifecycle.step(row.name, state=row.state, event=Event.RESUME)
        level = self._level(row)
        cause: dict[str, Any] = {"kind": "command", "command": "resume"}
        if level is not Level.GUARANTEED:
            cause = {"kind": "resume-best-effort", "detail": "its processes were never stopped"}
        row = await self._life.move(row, Event.RESUME, cause, desired="running")
        notices = []
        current = self._life.current
        if current is not None and current.link is not None:
            notices += await self._ask(current, "resume")
            notices += await self._command(row, current, Adapter.from_json(row.adapter).resume)
        await self._parts.listeners.release(row.id)
        return {"name": row.name, "state": str(row.state), "level": str(level), "notices": notices}

    async def go_on(self, row: InstanceRow) -> None:
        """Have a pause that is kept hold, after an engine or a gateway came back."""
        if row.state is State.PAUSED:
            for notice in await self._act(row, self._level(row), command=False):
                logger.warning("%s: %s", row.name, notice)

    async def _act(self, row: InstanceRow, level: Level, *, command: bool = True) -> list[str]:
        hold_s = float(await asyncio.to_thread(self._parts.settings.text, row.name, options.PAUSE_HOLD_S))
        await self._parts.listeners.hold(row.id, hold_s)
        current = self._life.current
        if current is None or current.link is None:
            return []
        notices = []
        if command:
            notices += await self._command(row, current, Adapter.from_json(row.adapter).pause)
        if level is Level.GUARANTEED:
            notices += await self._ask(current, "pause")
        return notices

    async def _ask(self, current: CurrentRun, op: str) -> list[str]:
        assert current.link is not None
        try:
            answer = await current.link.ask(op)
        except KeeperGone:
            await self._life.doubt(current)
            return []
        return [] if answer.get("ok") else [f"its keeper refused to {op} it: {answer.get('error')}"]

    async def _command(self, row: InstanceRow, current: CurrentRun, template: Template | None) -> list[str]:
        """Run what the adapter declares; whatever comes of it, the engine's own way follows."""
        if template is None:
            return []
        try:
            command = await asyncio.to_thread(launching.command, self._parts.files, row, template)
            ran = await current.run_command(command, timeout_s=COMMAND_TIMEOUT_S)
        except (KeeperGone, launching.CommandUnusable) as error:
            return [f"{template.exec} did not run: {error}"]
        return [] if ran.succeeded else [current.known.clean(f"{template.exec} {ran.describe()}")]

    def _level(self, row: InstanceRow) -> Level:
        declared = Adapter.from_json(row.adapter).declaration
        return capability.project(declared, capability.this_os())[capability.PAUSE]
