"""Watching over one instance's Run: what became of it, what that means for the instance, and what is kept of it.

Everything but `watch` is called under the instance's lock.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from kt_ledger.records import InstanceRow, RunRow, State, TransitionRow
from kt_ledger.store import StoreUnavailable
from kt_supervisor.engine import adoption, launching, lifecycle
from kt_supervisor.engine.adoption import Verdict
from kt_supervisor.engine.current_run import CurrentRun
from kt_supervisor.engine.keeper_link import KeeperGone
from kt_supervisor.engine.lifecycle import Event
from kt_supervisor.engine.log_retention import Retention
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import NoSuchAgent

logger = logging.getLogger(__name__)

AGAIN_S = 1.0
LATE_KEEPER_S = 1.5
"""How long an intended Run without a keeper may still get one from an engine that has just died."""


class Supervision:
    """One instance's Run, from the moment that it is intended until its end is kept.

    `news` is set whenever something happened that a follower of its logs should look at.
    """

    def __init__(self, parts: Parts, row: InstanceRow, *, stop_again: Callable[[], Awaitable[Any]]) -> None:
        """Begin with no Run; `stop_again` goes on with a stop that an earlier engine began."""
        self.id = row.id
        self.name = row.name
        self.lock = asyncio.Lock()
        self.news = asyncio.Event()
        self.current: CurrentRun | None = None
        self._parts = parts
        self._stop_again = stop_again
        self._retention = Retention(parts, row.id, row.name)

    async def row(self) -> InstanceRow:
        """Return what the ledger knows. Raises NoSuchAgent where it was removed meanwhile."""
        found = await self._parts.writer.do(lambda store: store.instance(self.name))
        if found is None or found.id != self.id:
            raise NoSuchAgent(self.name)
        return found

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
                        await self.judge(await self.row())
            except (StoreUnavailable, OSError, KeeperGone) as error:
                logger.warning("the end of %s is not kept yet: %s", self.name, error)
            if self.current is current:
                await asyncio.sleep(AGAIN_S)

    async def judge(self, row: InstanceRow) -> None:
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
            await self.exited(row, evidence.exit or {})
        else:
            await self._lost(row, current, evidence)

    async def _adopted(self, row: InstanceRow, current: CurrentRun) -> None:
        await current.started()
        if row.state is State.STARTING:
            live = current.live_row()
            row = await self.move(row, Event.READY, {"kind": "adapter-ready"}, run=live)
            current.run = live
        self.follow(current)
        await self._remember_listener(row, current)
        if row.state is State.STOPPING:
            self._parts.tasks.start(f"stop {self.name}", self._go_on_stopping())

    async def _go_on_stopping(self) -> None:
        await self._stop_again()

    async def _remember_listener(self, row: InstanceRow, current: CurrentRun) -> None:
        try:
            provider = await asyncio.to_thread(launching.provider, self._parts.files, row, environment={})
        except Exception as error:
            # Settings that somebody broke by hand must not close the listener of an agent that runs.
            logger.warning("the listener of %s is left as it is: %s", self.name, error)
            self._parts.listeners.leave_alone(self.id)
            return
        if provider is not None:
            run = None if row.state is State.STOPPING else current.run
            self._parts.listeners.remember(row, provider, run)

    def follow(self, current: CurrentRun) -> None:
        """Fold its output as it comes, and settle it once it has ended."""
        assert current.link is not None

        def on_output() -> None:
            current.tail.poke()
            self.news.set()
            self._retention.poke()

        current.link.on_output = on_output
        current.input.open()
        current.tail.poke()
        self._parts.tasks.start(f"watch {self.name}", self.watch(current))

    async def exited(self, row: InstanceRow, ended: dict[str, Any]) -> None:
        """Keep an end that the keeper recorded."""
        how, event = describe_exit(ended), Event.EXITED
        cause: dict[str, Any]
        if row.state in (State.RUNNING, State.PAUSED):
            if ended.get("stop_asked"):
                event = Event.ENDED_APART
            elif ended.get("code") == 0:
                event = Event.FINISHED
        if row.state is State.STOPPING or event is Event.ENDED_APART:
            cause = (
                {"kind": "stop-forced", "detail": how} if ended.get("forced") else {"kind": "stop-graceful"}
            )
        elif row.state is State.STARTING:
            cause = {"kind": "launch-error", "detail": ended.get("spawn_error") or how}
        elif event is Event.FINISHED:
            cause = {"kind": "exited", "code": 0}
        else:
            cause = {"kind": "crashed", "detail": how}
        await self.settle(row, event, cause, ended)

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
        await self.settle(row, Event.LOST, {"kind": kind, "detail": f"lost: {detail}"}, {})

    async def settle(
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
        await self.move(row, event, cause, run=over)
        self.current = None
        self.news.set()
        self._retention.poke()
        current.input.close()
        await current.let_go()

    async def move(
        self,
        row: InstanceRow,
        event: Event,
        cause: dict[str, Any],
        *,
        desired: str | None = None,
        run: RunRow | None = None,
    ) -> InstanceRow:
        """Take the table's step, and keep it with its cause; return the instance as it is then."""
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


def describe_exit(ended: Mapping[str, Any]) -> str:
    """Return how an agent ended, in words."""
    if ended.get("spawn_error"):
        return str(ended["spawn_error"])
    if ended.get("signal") is not None:
        return f"ended by signal {ended['signal']}"
    if ended.get("code") is not None:
        return f"exited with code {ended['code']}"
    return "its exit is not known"
