"""One agent instance: its state, its current Run, and the verbs, one after another.

Law: everything that changes the instance happens under its own lock; two instances never wait for each other.
"""

import asyncio
import json
import logging
import secrets
import shutil
from collections.abc import Coroutine, Mapping
from typing import Any

from kt_ledger import ids
from kt_ledger.durable import replace_file
from kt_ledger.records import LIVE_STATES, InstanceRow, RunRow, State
from kt_ledger.store import StoreUnavailable
from kt_supervisor.engine import adoption, launching, lifecycle, run_logs, views
from kt_supervisor.engine.current_run import CurrentRun, LaunchFailed, StopUnconfirmed
from kt_supervisor.engine.gateway_client import GatewayAway, ListenerRefused
from kt_supervisor.engine.launching import Plan
from kt_supervisor.engine.lifecycle import Event
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import WRONG_STATE, Refused
from kt_supervisor.engine.supervision import Supervision

logger = logging.getLogger(__name__)

TOKEN_BYTES = 32
STOP_AGAIN_S = 30.0

REMOVAL_WINDOW_S = 30.0
"""What a removal with --force leaves an agent to end by itself."""


class Instance:
    """One registration. `news` is set whenever something happened that a follower of its logs should look at."""

    def __init__(self, parts: Parts, row: InstanceRow) -> None:
        self.id = row.id
        self.name = row.name
        self.removed = False
        self._parts = parts
        self._life = Supervision(parts, row, stop_again=lambda: self.stop(timeout_s=STOP_AGAIN_S))
        self.lock = self._life.lock
        self.news = self._life.news

    @property
    def current(self) -> CurrentRun | None:
        """The Run under way."""
        return self._life.current

    async def row(self) -> InstanceRow:
        """Return what the ledger knows. Raises NoSuchAgent where it was removed meanwhile."""
        return await self._life.row()

    def watch(self) -> Coroutine[Any, Any, None]:
        """Return the work that settles the Run under way once it has ended."""
        assert self.current is not None
        return self._life.watch(self.current)

    # -- verbs -------------------------------------------------------------------------------------------------
    async def start(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Start it with its caller's environment; return once it has been alive for the readiness window.

        Raises:
            InvalidTransition, LaunchFailed, and everything that `launching.plan` raises (nothing has changed then).
        """
        async with self.lock:
            row = await self._life.row()
            lifecycle.step(self.name, state=row.state, event=Event.START)
            plan = await asyncio.to_thread(launching.plan, self._parts.files, row, environment=environment)
            run = RunRow(
                id=ids.new_id(wall=self._parts.clock),
                instance_id=self.id,
                token=secrets.token_urlsafe(TOKEN_BYTES),
                started_at_ns=self._parts.clock.wall_ns(),
            )
            asked = {"kind": "command", "command": "start"}
            row = await self._life.move(row, Event.START, asked, desired="running", run=run)
            self._life.current = CurrentRun(self._parts, row, run)
            try:
                notices = await self._launch(row, plan, self._life.current)
            except Exception as error:
                raise await self._launch_failed(row, error) from error
            assert self._life.current is not None
            facts = {"name": self.name, "state": str(State.RUNNING), "run_id": run.id}
            return {**facts, "pid": self._life.current.run.agent_pid, "notices": notices}

    async def stop(self, *, timeout_s: float) -> dict[str, Any]:
        """Stop it and everything that it started.

        Raises:
            InvalidTransition. StopUnconfirmed: something of it does not end; it stays `stopping`.
        """
        async with self.lock:
            return await self._stop(await self._life.row(), timeout_s)

    async def remove(self, *, delete: bool, force: bool) -> dict[str, Any]:
        """Free the name; the ledger keeps what was used. Raises Refused where it runs and is not forced."""
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
            await self._parts.listeners.drop(self.id)
            at_ns = self._parts.clock.wall_ns()
            await self._parts.writer.do(lambda store: store.remove_instance(self.id, at_ns=at_ns))
            self.removed = True
            self.news.set()
            if delete:
                await asyncio.to_thread(self._delete_folders)
        return {"name": self.name, "removed": True, "home": "delete" if delete else "retain"}

    async def _stop(self, row: InstanceRow, timeout_s: float) -> dict[str, Any]:
        lifecycle.step(self.name, state=row.state, event=Event.STOP)
        asked = {"kind": "command", "command": "stop"}
        row = await self._life.move(row, Event.STOP, asked, desired="stopped")
        await self._parts.listeners.withdraw(self.id)
        if self._life.current is None or self._life.current.link is None:
            await self._life.judge(row)
        if self._life.current is not None:
            await self._end(timeout_s)
        row = await self._life.row()
        if row.state is not State.STOPPED:
            raise StopUnconfirmed(self.name, "(of its last Run)")
        forced = (row.cause or {}).get("kind") == "stop-forced"
        return {"name": self.name, "state": str(row.state), "forced": forced}

    # -- what happens by itself --------------------------------------------------------------------------------
    async def adopt(self, run: RunRow) -> None:
        """Take over a Run that an earlier engine began."""
        async with self.lock:
            row = await self._life.row()
            self._life.current = CurrentRun(self._parts, row, run)
            await self._life.judge(row)

    async def reconcile(self, environment: Mapping[str, str]) -> list[str]:
        """Have the listener that the settings ask for; a live Run keeps the one that it began with."""
        if self.lock.locked():
            return []  # whatever is under way looks at the settings itself, or when it ends
        async with self.lock:
            row = await self._life.row()
            if row.state in LIVE_STATES:
                return []
            provider = await asyncio.to_thread(
                launching.provider, self._parts.files, row, environment=environment
            )
            if provider is None:
                await self._parts.listeners.drop(self.id)
                return []
            try:
                return (await self._parts.listeners.serve(row, provider))[1]
            except (GatewayAway, ListenerRefused) as error:
                return [f"{self.name} has no listener yet: {error}"]

    # -- inside, under the lock --------------------------------------------------------------------------------
    async def _launch(self, row: InstanceRow, plan: Plan, current: CurrentRun) -> list[str]:
        port: int | None = None
        notices: list[str] = []
        if plan.upstream:
            port, notices = await self._parts.listeners.serve(row, plan.upstream, run=current.run)
            await self._parts.listeners.probe(port, current.run.token)
        program = await asyncio.to_thread(launching.program, plan, row, current.run, port=port)
        await asyncio.to_thread(self._claim, current)
        await current.spawn(
            program, name=row.name, cwd=plan.home, interactive=plan.interactive, metered=port is not None
        )
        await current.ready()
        live = current.live_row()
        row = await self._life.move(row, Event.READY, {"kind": "adapter-ready"}, run=live)
        current.run = live
        self._life.follow(current)
        unseen = [views.UNMAPPED] if plan.adapter.goes_unseen() else []
        return notices + unseen + list(program.notices)

    def _claim(self, current: CurrentRun) -> None:
        current.files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = run_logs.next_number(self._parts.files, self.id)
        whose = {"instance_id": self.id, "name": self.name, "number": number}
        replace_file(run_logs.owner_file(current.files), json.dumps(whose).encode())

    async def _launch_failed(self, row: InstanceRow, error: Exception) -> LaunchFailed:
        """Settle a start that came to nothing, and return how it is told."""
        assert self._life.current is not None
        current = self._life.current
        ended = await current.end_failed_start()
        told = current.explain(self.name, error, ended)
        cause = {"kind": "launch-error", "detail": told.detail}
        try:
            await self._life.settle(row, Event.LAUNCH_FAILED, cause, ended)
        except (StoreUnavailable, OSError) as trouble:
            logger.warning("the failed start of %s is not kept yet: %s", self.name, trouble)
            self._parts.tasks.start(f"settle {self.name}", self._life.watch(current))
        return told

    async def _end(self, timeout_s: float) -> None:
        assert self._life.current is not None
        ended = await self._life.current.stop(timeout_s=timeout_s)
        if ended is None:
            await self._life.judge(await self._life.row())
            return
        if left := adoption.survivors(ended):
            raise StopUnconfirmed(self.name, ", ".join(map(str, left)))
        await self._life.exited(await self._life.row(), ended)

    def _delete_folders(self) -> None:
        for run in run_logs.runs_of(self._parts.files, self.id):
            shutil.rmtree(run.root, ignore_errors=True)
        home = self._parts.files.home(self.name)
        if home.is_symlink():
            home.unlink()
        elif home.exists():
            shutil.rmtree(home)
