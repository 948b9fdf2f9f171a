"""Starting one instance: the intent, the listener, the files, the keeper, readiness; and what a failure leaves."""

import asyncio
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kt_ledger import ids
from kt_ledger.durable import replace_file
from kt_ledger.records import InstanceRow, RunRow, State
from kt_ledger.store import StoreUnavailable
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import readiness as manifest_readiness
from kt_manifest.launch.executable import ExecutableMissing, NotExecutable
from kt_manifest.launch.readiness import Probe
from kt_supervisor.engine.instance import failed_start, lifecycle, probing, readiness
from kt_supervisor.engine.instance.current_settings import Question
from kt_supervisor.engine.instance.failed_start import LaunchFailed
from kt_supervisor.engine.instance.lifecycle import Event
from kt_supervisor.engine.instance.readiness import Interrupted, Interruption
from kt_supervisor.engine.instance.restart_policy import History
from kt_supervisor.engine.instance.supervision import Supervision
from kt_supervisor.engine.output import run_logs
from kt_supervisor.engine.output.run_logs import KnownRun
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run import kernel_view, launching, limits, run_records
from kt_supervisor.engine.run.current_run import CurrentRun
from kt_supervisor.engine.run.launching import Plan
from kt_supervisor.engine.telling import views

logger = logging.getLogger(__name__)

TOKEN_BYTES = 32


class Starting:
    """One instance's starts; everything is called under its lock, but `interrupt`."""

    def __init__(self, parts: Parts, life: Supervision) -> None:
        self._parts = parts
        self._life = life
        self._interruption = Interruption()

    def interrupt(self) -> None:
        """Have a start that waits for readiness give up, since somebody stops the agent."""
        self._interruption.set()

    async def plan(self, row: InstanceRow, environment: Mapping[str, str], settings: Question) -> Plan:
        """Return how it would be started; raises everything that `launching.plan` raises.

        `settings`: the question to `CurrentSettings` that fits what is asked for.
        """
        return await asyncio.to_thread(self._plan, row, environment, settings)

    def _plan(self, row: InstanceRow, environment: Mapping[str, str], settings: Question) -> Plan:
        return launching.plan(self._parts.files, row, entries=settings(row), environment=environment)

    async def begin(
        self, row: InstanceRow, event: Event, cause: dict[str, Any], *, plan: Plan, history: History
    ) -> dict[str, Any]:
        """Begin a Run, and return once its agent is ready.

        Raises:
            InvalidTransition: nothing has changed. LaunchFailed: the failure is kept.
        """
        lifecycle.step(self._life.name, state=row.state, event=event)
        run = RunRow(
            id=ids.new_id(wall=self._parts.clock),
            instance_id=self._life.id,
            token=secrets.token_urlsafe(TOKEN_BYTES),
            started_at_ns=self._parts.clock.wall_ns(),
        )
        row = await self._life.move(row, event, cause, desired="running", run=run, history=history)
        current = self._life.current = CurrentRun(self._parts, row, run)
        interruption = self._interruption.begin()
        try:
            notices = await self._launch(row, plan, current, interruption)
        except Interrupted as error:
            # Whoever stops it takes over from here: it is still `starting`, and theirs.
            raise LaunchFailed(f"{row.name} {error.got}", detail=error.got) from error
        except Exception as error:
            raise await self._failed(row, current, error) from error
        facts = {"name": row.name, "state": str(State.RUNNING), "run_id": run.id}
        return {**facts, "pid": current.run.agent_pid, "notices": notices}

    async def go_on(self) -> None:
        """Go on with a start that an earlier engine began, from readiness on."""
        row, current = await self._life.row(), self._life.current
        if row.state is not State.STARTING or current is None or current.link is None:
            return
        try:
            probe = await asyncio.to_thread(self._probe_again, row)
            await self._ready(row, current, self._interruption.begin(), probe)
        except Interrupted:
            return
        except Exception as error:
            told = await self._failed(row, current, error)
            logger.warning("%s", told)

    async def _launch(
        self, row: InstanceRow, plan: Plan, current: CurrentRun, interruption: asyncio.Future[None]
    ) -> list[str]:
        port: int | None = None
        notices: list[str] = []
        current.known.add(plan.unshown)
        current.recalled = True
        if plan.upstream:
            port, notices = await self._parts.listeners.serve(row, plan.upstream, run=current.run)
            await self._parts.listeners.probe(port, current.run.token)
        program = await asyncio.to_thread(
            launching.program, plan, row, current.run, port=port, files=self._parts.files
        )
        await asyncio.to_thread(self._claim, current)
        await current.spawn(program, cwd=plan.home, interactive=plan.interactive, metered=port is not None)
        await self._ready(row, current, interruption, program.ready)
        unseen = [views.UNMAPPED] if plan.adapter.goes_unseen() else []
        record = await asyncio.to_thread(run_records.read_json, current.files.record)
        return notices + unseen + list(program.notices) + limits.unenforced(record)

    async def _ready(
        self,
        row: InstanceRow,
        current: CurrentRun,
        interruption: asyncio.Future[None],
        probe: Probe | None,
    ) -> None:
        await current.started()
        await current.hold_spares()
        assert current.link is not None
        self._life.follow(current)  # now: what is not folded takes room, and an agent without room waits
        await readiness.wait(current.link, interruption)
        if probe is not None:
            wanted = probing.describe(probe)
            looking = probing.wait(probe, current.files, current.link)
            task = self._parts.tasks.start(f"readiness of {row.name}", looking)
            await readiness.check(
                current.link, interruption, task, wanted=wanted, deadline_s=probe.deadline_s
            )
        live = current.live_row()
        await self._life.move(row, Event.READY, {"kind": "adapter-ready"}, run=live)
        current.run = live

    def _probe_again(self, row: InstanceRow) -> Probe | None:
        """Return what an agent that an earlier engine started is waited for by; its variables are read from it."""
        declared = Adapter.from_json(row.adapter).ready
        if declared is None or self._life.current is None:
            return None
        record = run_records.read_json(self._life.current.files.record) or {}
        agent = kernel_view.look(record.get("agent_pid"))
        home = self._parts.files.home(row.name)
        return None if agent is None else manifest_readiness.probe(declared, agent.env, home)

    def _claim(self, current: CurrentRun) -> None:
        current.files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = run_logs.next_number(self._parts.files, self._life.id)
        whose = {"instance_id": self._life.id, "name": self._life.name, "number": number}
        replace_file(run_records.owner_file(current.files), json.dumps(whose).encode())

    async def _failed(self, row: InstanceRow, current: CurrentRun, error: Exception) -> LaunchFailed:
        """Settle a start that came to nothing, and return how it is told."""
        ended = await current.end_failed_start()
        if isinstance(error, ExecutableMissing | NotExecutable):
            # As where a keeper finds that out: trying again comes to the same.
            ended = replace(ended, spawn_error=str(error))
        run = KnownRun(0, current.files, current.scrubbing)
        told = failed_start.explain(row.name, run, error, ended, known=current.known)
        cause = {"kind": "launch-error", "detail": told.detail}
        try:
            await self._life.settle(row, Event.LAUNCH_FAILED, cause, ended)
        except (StoreUnavailable, OSError) as trouble:
            logger.warning("the failed start of %s is not kept yet: %s", row.name, trouble)
            self._parts.tasks.start(f"settle {row.name}", self._life.watch(current))
        return told
