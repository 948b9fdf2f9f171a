"""One agent instance: its state, its current Run, and the verbs, one after another.

Law: everything that changes the instance happens under its own lock; two instances never wait for each other.
"""

import asyncio
import json
import logging
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kt_ledger import ids
from kt_ledger.durable import replace_file
from kt_ledger.records import LIVE_STATES, InstanceRow, RunRow, State, TransitionRow
from kt_ledger.store import StoreUnavailable
from kt_supervisor.engine import adoption, launching, lifecycle, run_logs
from kt_supervisor.engine.adoption import Verdict
from kt_supervisor.engine.current_run import CurrentRun, LaunchFailed, StopUnconfirmed
from kt_supervisor.engine.gateway_client import GatewayAway, ListenerRefused
from kt_supervisor.engine.keeper_link import KeeperGone
from kt_supervisor.engine.launching import Plan
from kt_supervisor.engine.lifecycle import Event
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import WRONG_STATE, NoSuchAgent, Refused

logger = logging.getLogger(__name__)

TOKEN_BYTES = 32
AGAIN_S = 1.0
LATE_KEEPER_S = 1.5
"""How long an intended Run without a keeper may still get one from an engine that has just died."""


class Instance:
    """One registration. `news` is set whenever something happened that a follower of its logs should look at."""

    def __init__(self, parts: Parts, row: InstanceRow) -> None:
        self.id = row.id
        self.name = row.name
        self.lock = asyncio.Lock()
        self.news = asyncio.Event()
        self.current: CurrentRun | None = None
        self.removed = False
        self._parts = parts

    async def row(self) -> InstanceRow:
        """Return what the ledger knows. Raises NoSuchAgent where it was removed meanwhile."""
        found = await self._parts.writer.do(lambda store: store.instance(self.name))
        if found is None or found.id != self.id:
            raise NoSuchAgent(self.name)
        return found

    # -- verbs -------------------------------------------------------------------------------------------------
    async def start(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Start it with its caller's environment; return once it has been alive for the readiness window.

        Raises:
            InvalidTransition, LaunchFailed, and everything that `launching.plan` raises (nothing has changed then).
        """
        async with self.lock:
            row = await self.row()
            lifecycle.step(self.name, state=row.state, event=Event.START)
            plan = await asyncio.to_thread(launching.plan, self._parts.files, row, environment=environment)
            run = RunRow(
                id=ids.new_id(wall=self._parts.clock),
                instance_id=self.id,
                token=secrets.token_urlsafe(TOKEN_BYTES),
                started_at_ns=self._parts.clock.wall_ns(),
            )
            asked = {"kind": "command", "command": "start"}
            row = await self._move(row, Event.START, asked, desired="running", run=run)
            self.current = CurrentRun(self._parts, row, run)
            try:
                notices = await self._launch(row, plan, self.current)
            except Exception as error:
                raise await self._launch_failed(row, error) from error
            assert self.current is not None
            facts = {"name": self.name, "state": str(State.RUNNING), "run_id": run.id}
            return {**facts, "pid": self.current.run.agent_pid, "notices": notices}

    async def stop(self, *, timeout_s: float) -> dict[str, Any]:
        """Stop it and everything that it started.

        Raises:
            InvalidTransition. StopUnconfirmed: something of it does not end; it stays `stopping`.
        """
        async with self.lock:
            row = await self.row()
            lifecycle.step(self.name, state=row.state, event=Event.STOP)
            row = await self._move(row, Event.STOP, {"kind": "command", "command": "stop"}, desired="stopped")
            await self._parts.listeners.withdraw(self.id)
            if self.current is None or self.current.link is None:
                await self._judge(row)
            if self.current is not None:
                await self._end(timeout_s)
            row = await self.row()
            forced = (row.cause or {}).get("kind") == "stop-forced"
            return {"name": self.name, "state": str(row.state), "forced": forced}

    async def remove(self, *, delete: bool, force: bool) -> dict[str, Any]:
        """Free the name; the ledger keeps what was used. Raises Refused where it runs and is not forced."""
        row = await self.row()
        if row.state in LIVE_STATES:
            if not force:
                raise Refused(
                    f"cannot remove {self.name}: got state {row.state}, wanted one that does not run; stop it first, "
                    "or remove it with --force",
                    code="running",
                    exit_code=WRONG_STATE,
                )
            await self.stop(timeout_s=30.0)
        async with self.lock:
            row = await self.row()
            if row.state in LIVE_STATES:
                raise lifecycle.InvalidTransition(self.name, verb=Event.STOP, state=row.state)
            await self._parts.listeners.drop(self.id)
            at_ns = self._parts.clock.wall_ns()
            await self._parts.writer.do(lambda store: store.remove_instance(self.id, at_ns=at_ns))
            self.removed = True
            self.news.set()
            if delete:
                await asyncio.to_thread(self._delete_folders)
        return {"name": self.name, "removed": True, "home": "delete" if delete else "retain"}

    # -- what happens by itself --------------------------------------------------------------------------------
    async def adopt(self, run: RunRow) -> None:
        """Take over a Run that an earlier engine began."""
        async with self.lock:
            row = await self.row()
            self.current = CurrentRun(self._parts, row, run)
            await self._judge(row)

    async def reconcile(self, environment: Mapping[str, str]) -> list[str]:
        """Have the listener that the settings ask for; a live Run keeps the one that it began with."""
        if self.lock.locked():
            return []  # whatever is under way looks at the settings itself, or when it ends
        async with self.lock:
            row = await self.row()
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

    async def watch(self, current: CurrentRun) -> None:
        """Settle a Run once it has ended, however that happens; tries again while the ledger is away."""
        link = current.link
        try:
            if link is not None:
                await link.exited
        except KeeperGone:
            pass
        while self.current is current and current.link in (link, None):
            try:
                async with self.lock:
                    if self.current is current:
                        await self._judge(await self.row())
            except (StoreUnavailable, OSError) as error:
                logger.warning("the end of %s is not kept yet: %s", self.name, error)
            if self.current is current:
                await asyncio.sleep(AGAIN_S)

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
        row = await self._move(row, Event.READY, {"kind": "adapter-ready"}, run=live)
        current.run = live
        self._follow(current)
        return notices + list(program.notices)

    def _claim(self, current: CurrentRun) -> None:
        current.files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        whose = {"instance_id": self.id, "name": self.name}
        replace_file(run_logs.owner_file(current.files), json.dumps(whose).encode())

    async def _launch_failed(self, row: InstanceRow, error: Exception) -> LaunchFailed:
        """Settle a start that came to nothing, and return how it is told."""
        assert self.current is not None
        current = self.current
        ended = await current.end_failed_start()
        told = current.explain(self.name, error, ended)
        cause = {"kind": "launch-error", "detail": told.detail}
        try:
            await self._settle(row, Event.LAUNCH_FAILED, cause, ended)
        except (StoreUnavailable, OSError) as trouble:
            logger.warning("the failed start of %s is not kept yet: %s", self.name, trouble)
            self._parts.tasks.start(f"settle {self.name}", self.watch(current))
        return told

    async def _end(self, timeout_s: float) -> None:
        assert self.current is not None
        ended = await self.current.stop(timeout_s=timeout_s)
        if ended is None:
            await self._judge(await self.row())
            return
        if left := adoption.survivors(ended):
            raise StopUnconfirmed(self.name, left)
        await self._exited(await self.row(), ended)

    async def _judge(self, row: InstanceRow) -> None:
        """Find out what became of the current Run, and do what follows."""
        if self.current is None:
            run = await self._parts.writer.do(lambda store: store.run(row.run_id or ""))
            if run is None or run.state == "ended":
                return
            self.current = CurrentRun(self._parts, row, run)
        current = self.current
        evidence = await asyncio.to_thread(adoption.gather, current.files, current.run)
        verdict = adoption.judge(evidence)
        if verdict is Verdict.LOST and evidence.record is None and not current.is_old(LATE_KEEPER_S):
            verdict, evidence = await current.wait_for_keeper(LATE_KEEPER_S)
        if verdict is Verdict.ADOPT:
            try:
                await current.meet_keeper()
            except KeeperGone:
                evidence = await asyncio.to_thread(adoption.gather, current.files, current.run)
                verdict = Verdict.END if evidence.exit is None else Verdict.FINISH
            else:
                await self._adopted(row, current)
                return
        if verdict is Verdict.FINISH:
            if row.state is State.STOPPING and adoption.survivors(evidence.exit or {}):
                return  # not confirmed: looked at again by whoever watches, or by the next stop
            await current.meet_keeper_to_release()
            await self._exited(row, evidence.exit or {})
        else:
            await self._lost(row, current, evidence)

    async def _adopted(self, row: InstanceRow, current: CurrentRun) -> None:
        await current.started()
        if row.state is State.STARTING:
            live = current.live_row()
            row = await self._move(row, Event.READY, {"kind": "adapter-ready"}, run=live)
            current.run = live
        provider = await asyncio.to_thread(launching.provider, self._parts.files, row, environment={})
        if provider is not None:
            self._parts.listeners.remember(
                row, provider, None if row.state is State.STOPPING else current.run
            )
        self._follow(current)
        if row.state is State.STOPPING:
            self._parts.tasks.start(f"stop {self.name}", self._stop_again())

    async def _stop_again(self) -> None:
        """Go on with a stop that an earlier engine began."""
        await self.stop(timeout_s=30.0)

    def _follow(self, current: CurrentRun) -> None:
        assert current.link is not None

        def on_output() -> None:
            current.tail.poke()
            self.news.set()

        current.link.on_output = on_output
        current.tail.poke()
        self._parts.tasks.start(f"watch {self.name}", self.watch(current))

    async def _exited(self, row: InstanceRow, ended: dict[str, Any]) -> None:
        how, event = describe_exit(ended), Event.EXITED
        if ended.get("stop_asked") and row.state in (State.RUNNING, State.PAUSED):
            event = Event.ENDED_APART
        if row.state is State.STOPPING or event is Event.ENDED_APART:
            cause = (
                {"kind": "stop-forced", "detail": how} if ended.get("forced") else {"kind": "stop-graceful"}
            )
        elif row.state is State.STARTING:
            cause = {"kind": "launch-error", "detail": ended.get("spawn_error") or how}
        else:
            cause = {"kind": "crashed", "detail": how}
        await self._settle(row, event, cause, ended)

    async def _lost(self, row: InstanceRow, current: CurrentRun, evidence: adoption.Evidence) -> None:
        detail = "nothing of it was found, and nobody recorded how it ended"
        if not evidence.same_boot:
            detail = "the machine was restarted"
        elif evidence.lock_held:
            clean = await asyncio.to_thread(adoption.end_tree, current.run.id, evidence.record)
            detail = "its keeper died, so its exit is not known; what was left of it was ended"
            if not clean:
                detail = "its keeper died, and what is left of it could not be ended"
        kind = "stop-forced" if row.state is State.STOPPING else "crashed"
        await self._settle(row, Event.LOST, {"kind": kind, "detail": f"lost: {detail}"}, {})

    async def _settle(
        self, row: InstanceRow, event: Event, cause: dict[str, Any], ended: dict[str, Any]
    ) -> None:
        """Fold what the Run left, then keep its end, then let the keeper go: in this order nothing is lost."""
        assert self.current is not None
        current = self.current
        await self._parts.listeners.withdraw(self.id)
        await current.tail.fold(closed=True)
        over = replace(
            current.run,
            state="ended",
            ended_at_ns=ended.get("ended_at_ns") or self._parts.clock.wall_ns(),
            exit_code=ended.get("code"),
            exit_signal=ended.get("signal"),
        )
        await self._move(row, event, cause, run=over)
        self.current = None
        self.news.set()
        await current.let_go()

    async def _move(
        self,
        row: InstanceRow,
        event: Event,
        cause: dict[str, Any],
        *,
        desired: str | None = None,
        run: RunRow | None = None,
    ) -> InstanceRow:
        following = lifecycle.step(self.name, state=row.state, event=event).state
        transition = TransitionRow(
            instance_id=self.id,
            prior_state=row.state,
            new_state=following,
            cause=cause,
            at_ns=self._parts.clock.wall_ns(),
        )
        await self._parts.writer.do(lambda store: store.move(transition, desired=desired, run=run))
        self.news.set()
        return replace(row, state=following, cause=cause, run_id=run.id if run else row.run_id)

    def _delete_folders(self) -> None:
        for run in run_logs.runs_of(self._parts.files, self.id):
            shutil.rmtree(run.root, ignore_errors=True)
        home = self._parts.files.home(self.name)
        if home.is_symlink():
            home.unlink()
        elif home.exists():
            shutil.rmtree(home)


def describe_exit(ended: Mapping[str, Any]) -> str:
    """Return how an agent ended, in words."""
    if ended.get("spawn_error"):
        return str(ended["spawn_error"])
    if ended.get("signal") is not None:
        return f"ended by signal {ended['signal']}"
    if ended.get("code") is not None:
        return f"exited with code {ended['code']}"
    return "its exit is not known"
