"""One agent instance: its verbs, one after another.

Law: everything that changes the instance happens under its own lock; two instances never wait for each other.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kt_ledger.exit_codes import WRONG_STATE
from kt_ledger.records import LIVE_STATES, InstanceRow, RunRow, State
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import render
from kt_manifest.launch.operation import Command
from kt_supervisor.engine.gateway.client import GatewayAway, ListenerRefused
from kt_supervisor.engine.instance import lifecycle, rekeying, removal
from kt_supervisor.engine.instance.current_settings import NO_OVERRIDES, Question
from kt_supervisor.engine.instance.failed_start import LaunchFailed
from kt_supervisor.engine.instance.lifecycle import Event
from kt_supervisor.engine.instance.pausing import Pausing
from kt_supervisor.engine.instance.restart_policy import History
from kt_supervisor.engine.instance.starting import Starting
from kt_supervisor.engine.instance.supervision import Resumed, Supervision
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import Refused, StopUnconfirmed
from kt_supervisor.engine.run import adoption, known_provider, launching, run_environment
from kt_supervisor.engine.run.current_run import CurrentRun
from kt_supervisor.engine.run.ending import Exit

logger = logging.getLogger(__name__)

STOP_AGAIN_S = 30.0
REMOVAL_WINDOW_S = 30.0
"""What a removal with --force leaves an agent to end by itself."""


class Instance:
    """One registration. `news` is set whenever something happened that a follower of its logs should look at."""

    def __init__(self, parts: Parts, row: InstanceRow) -> None:
        self.id = row.id
        self.name = row.name
        self.removed = False
        parts.settings.know(row)
        self._parts = parts
        resumed = Resumed(
            start=self._go_on_starting,
            stop=lambda: self.stop(timeout_s=STOP_AGAIN_S),
            pause=self._go_on_pausing,
            restart=self._come_back,
        )
        self._life = Supervision(parts, row, resumed=resumed)
        self._starting = Starting(parts, self._life)
        self._pausing = Pausing(parts, self._life)
        self.lock = self._life.lock
        self.news = self._life.news

    @property
    def current(self) -> CurrentRun | None:
        """The Run under way."""
        return self._life.current

    @property
    def is_busy(self) -> bool:
        """Whether a Run is under way, a restart is due, or a verb is being done that may begin one."""
        waits = self._parts.restarting.is_waiting(self.id)
        return self.current is not None or waits or self.lock.locked()

    @property
    def waits_for(self) -> str | None:
        """What keeps the agent from going on, though it runs."""
        return self._life.waits_for

    @property
    def trouble(self) -> str | None:
        """Why what is known of the Run cannot be verified now, and what to do."""
        return self._life.trouble

    async def row(self) -> InstanceRow:
        """Return what the ledger knows. Raises NoSuchAgent where it was removed meanwhile."""
        return await self._life.row()

    def watch(self) -> Coroutine[Any, Any, None]:
        """Return the work that settles the Run under way once it has ended."""
        assert self.current is not None
        return self._life.watch(self.current)

    # -- verbs -------------------------------------------------------------------------------------------------
    async def start(
        self, environment: Mapping[str, str], overrides: Mapping[str, Value] = NO_OVERRIDES
    ) -> dict[str, Any]:
        """Start it with its caller's environment, and settings that hold until the next start; return once it is ready.

        Raises:
            InvalidTransition, LaunchFailed, and everything that `launching.plan` raises (nothing has changed then).
        """
        async with self.lock:
            settings = partial(self._parts.settings.for_a_fresh_start, overrides=overrides)
            return await self._start(await self._life.row(), environment, settings)

    async def stop(self, *, timeout_s: float) -> dict[str, Any]:
        """Stop it and everything that it started; where a restart is due, that one does not come.

        Raises:
            InvalidTransition. StopUnconfirmed: something of it does not end; it stays `stopping`.
        """
        self._starting.interrupt()
        async with self.lock:
            return await self._stop(await self._life.row(), timeout_s)

    async def restart(self, environment: Mapping[str, str], *, timeout_s: float) -> dict[str, Any]:
        """Stop it where it runs, then start it; what the start needs is judged before anything is stopped.

        Raises:
            What `stop` and `start` raise.
        """
        row = await self._life.row()
        lifecycle.step(self.name, state=row.state, event=Event.RESTART)
        await self._starting.plan(row, environment, self._parts.settings.for_a_restart)
        self._starting.interrupt()
        async with self.lock:
            row = await self._life.row()
            lifecycle.step(self.name, state=row.state, event=Event.RESTART)
            if row.state in LIVE_STATES:
                await self._stop(row, timeout_s)
                row = await self._life.row()
            return await self._start(row, environment, self._parts.settings.for_a_restart)

    async def pause(self) -> dict[str, Any]:
        """Hold its calls and, where its adapter promises that, freeze it. Raises InvalidTransition, Refused."""
        async with self.lock:
            return await self._pausing.pause(await self._life.row())

    async def resume(self) -> dict[str, Any]:
        """Let it go on. Raises InvalidTransition."""
        async with self.lock:
            return await self._pausing.resume(await self._life.row())

    async def remove(self, *, delete: bool, force: bool) -> dict[str, Any]:
        """Free the name; the ledger keeps what was used. Raises Refused where it runs and is not forced."""
        if force:
            self._starting.interrupt()
        async with self.lock:
            row = await self._life.row()
            if row.state in LIVE_STATES:
                if not force:
                    raise Refused(
                        f"cannot remove {self.name}: got state {row.state}, wanted one that does not run; stop it "
                        "first, or remove it with --force",
                        code="running",
                        exit_code=WRONG_STATE,
                    )
                await self._stop(row, REMOVAL_WINDOW_S)
            self._life.comebacks.cancel()
            await self._parts.listeners.drop(self.id)
            home = self._parts.files.home(self.name)
            notices: tuple[str, ...] = () if delete else await asyncio.to_thread(render.put_back, home)
            at_ns = self._parts.clock.wall_ns()
            intent = removal.Intent(instance_id=self.id, name=self.name, delete=delete, at_ns=at_ns)
            await asyncio.to_thread(removal.intend, self._parts.files, intent)
            await self._parts.writer.do(lambda store: store.remove_instance(self.id, at_ns=at_ns))
            self.removed = True
            self.news.set()
            self._parts.settings.forget(self.name)
            notices += await asyncio.to_thread(removal.carry_out, self._parts.files, intent)
        answer = {"name": self.name, "removed": True, "home": "delete" if delete else "retain"}
        return {**answer, "notices": list(notices)} if notices else answer

    # -- what happens by itself --------------------------------------------------------------------------------
    async def adopt(self, run: RunRow) -> None:
        """Take over a Run that an earlier engine began."""
        async with self.lock:
            row = await self._life.row()
            self._life.current = CurrentRun(self._parts, row, run)
            await self._life.judge(row)

    async def wait_again(self) -> None:
        """Go on waiting for a restart that an earlier engine decided."""
        async with self.lock:
            await self._life.comebacks.resume(await self._life.row())

    async def reconcile(self, environment: Mapping[str, str]) -> list[str]:
        """Have the listener that the settings ask for; a live Run keeps the one that it began with."""
        if self.lock.locked():
            return []  # whatever is under way looks at the settings itself, or when it ends
        async with self.lock:
            row = await self._life.row()
            if row.state in LIVE_STATES:
                return []
            entries = await asyncio.to_thread(self._parts.settings.of_the_run, row)
            provider = await asyncio.to_thread(
                known_provider.find, self._parts.files, entries, environment=environment
            )
            if provider is None:
                await self._parts.listeners.drop(self.id)
                return []
            try:
                return (await self._parts.listeners.serve(row, provider))[1]
            except (GatewayAway, ListenerRefused) as error:
                return [f"{self.name} has no listener yet: {error}"]

    async def rekey(self, names: frozenset[str]) -> rekeying.Rekeyed | None:
        """Give a live listener whose key is one of these secrets its present value (`rekeying`)."""
        async with self.lock:
            return await rekeying.rekey(self._parts, await self._life.row(), self.current, names)

    async def _go_on_starting(self) -> None:
        async with self.lock:
            await self._starting.go_on()

    async def _go_on_pausing(self) -> None:
        async with self.lock:
            await self._pausing.go_on(await self._life.row())

    async def _come_back(self) -> None:
        """Begin the restart that is due, if it still is."""
        async with self.lock:
            row = await self._life.row()
            past = History.from_json(row.restart)
            if row.state is not State.FAILED or past.due is None or self.removed:
                return
            history = replace(past, count=past.count + 1, due=None)
            waited_ms = int(past.due.wait_s * 1000)
            cause = {
                "kind": "restarted",
                "count": history.count,
                "waited_ms": waited_ms,
                "why": past.due.why,
            }
            try:
                environment = await asyncio.to_thread(run_environment.load, self._parts.files, self.id)
                plan = await self._starting.plan(row, environment or {}, self._parts.settings.for_a_restart)
            except Exception as error:
                # A setting, a secret or an adapter that is not there now will not be there in a minute either.
                await self._life.comebacks.park(past, str(error))
                return
            try:
                await self._starting.begin(row, Event.BACK, cause, plan=plan, history=history)
            except LaunchFailed as error:
                logger.warning("%s", error)

    # -- inside, under the lock --------------------------------------------------------------------------------
    async def _start(
        self, row: InstanceRow, environment: Mapping[str, str], settings: Question
    ) -> dict[str, Any]:
        lifecycle.step(self.name, state=row.state, event=Event.START)
        plan = await self._starting.plan(row, environment, settings)
        self._life.comebacks.cancel()
        asked = {"kind": "command", "command": "start"}
        return await self._starting.begin(row, Event.START, asked, plan=plan, history=History())

    async def _stop(self, row: InstanceRow, timeout_s: float) -> dict[str, Any]:
        asked = {"kind": "command", "command": "stop"}
        history = History.from_json(row.restart)
        if row.state is State.FAILED and history.due is not None:
            self._life.comebacks.cancel()
            over = replace(history, due=None, parked=None)
            row = await self._life.move(row, Event.CANCELLED, asked, desired="stopped", history=over)
            return {"name": self.name, "state": str(row.state), "forced": False}
        lifecycle.step(self.name, state=row.state, event=Event.STOP)
        row = await self._life.move(row, Event.STOP, asked, desired="stopped")
        await self._parts.listeners.withdraw(self.id)
        if self._life.current is None or self._life.current.link is None:
            await self._life.judge(row)
        if self._life.current is not None:
            await self._end(row, timeout_s)
        row = await self._life.row()
        if row.state is not State.STOPPED:
            raise StopUnconfirmed(self.name, self._life.trouble or "something of its last Run")
        forced = (row.cause or {}).get("kind") == "stop-forced"
        return {"name": self.name, "state": str(row.state), "forced": forced}

    async def _end(self, row: InstanceRow, timeout_s: float) -> None:
        assert self._life.current is not None
        command = await self._stop_command(row) if timeout_s > 0 else None
        ended = await self._life.current.stop(timeout_s=timeout_s, command=command)
        if ended is None:
            await self._life.judge(await self._life.row())
            return
        await self._settle_stop(ended)

    async def _settle_stop(self, ended: Exit) -> None:
        if left := adoption.survivors(ended):
            named = ", ".join(map(str, left))
            raise StopUnconfirmed(self.name, f"processes that do not end: {named}")
        await self._life.exited(await self._life.row(), ended)

    async def _stop_command(self, row: InstanceRow) -> Command | None:
        template = Adapter.from_json(row.adapter).stop
        if template is None:
            return None
        try:
            return await asyncio.to_thread(launching.command, self._parts.files, row, template)
        except launching.CommandUnusable as error:
            logger.warning("%s is stopped without its adapter's command: %s", self.name, error)
            return None
