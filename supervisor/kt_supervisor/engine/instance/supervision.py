"""Watching over one instance's Run: what became of it, what that means for the instance, and what is kept of it.

Everything but `watch` is called under the instance's lock.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from kt_ledger.records import InstanceRow, RunRow, State, TransitionRow
from kt_ledger.store import StoreUnavailable
from kt_supervisor.engine.instance import lifecycle, remembering
from kt_supervisor.engine.instance.comebacks import Comebacks
from kt_supervisor.engine.instance.disk_wait import DiskWait
from kt_supervisor.engine.instance.lifecycle import Event
from kt_supervisor.engine.instance.restart_policy import History
from kt_supervisor.engine.output.log_retention import Retention
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import NoSuchAgent
from kt_supervisor.engine.run import adoption, ending, leftovers
from kt_supervisor.engine.run.adoption import Evidence, Verdict
from kt_supervisor.engine.run.current_run import CurrentRun
from kt_supervisor.engine.run.ending import Exit
from kt_supervisor.engine.run.keeper_link import KeeperGone

logger = logging.getLogger(__name__)

AGAIN_S = 1.0
LATE_KEEPER_S = 1.5
"""How long an intended Run without a keeper may still get one from an engine that has just died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """What goes on by itself: a start, a stop or a pause that an earlier engine began, a restart that is due."""

    start: Callable[[], Awaitable[Any]]
    stop: Callable[[], Awaitable[Any]]
    pause: Callable[[], Awaitable[Any]]
    restart: Callable[[], Awaitable[Any]]


class Supervision:
    """One instance's Run, from the moment that it is intended until its end is kept.

    `news` is set whenever something happened that a follower of its logs should look at. `trouble` says why what is
    known of the Run cannot be verified at this moment, and what to do about it.
    """

    def __init__(self, parts: Parts, row: InstanceRow, *, resumed: Resumed) -> None:
        """Begin with no Run; `resumed` is what goes on by itself."""
        self.id = row.id
        self.name = row.name
        self.lock = asyncio.Lock()
        self.news = asyncio.Event()
        self.current: CurrentRun | None = None
        self.trouble: str | None = None
        self.disk = DiskWait(parts, row.id, row.name)
        self.comebacks = Comebacks(parts, row, restart=resumed.restart)
        self._parts = parts
        self._resumed = resumed
        self._retention = Retention(parts, row.id, row.name, ask=self._make_room)

    @property
    def waits_for(self) -> str | None:
        """What keeps the agent from going on, though it runs; None where nothing does."""
        return None if self.current is None else self.disk.waits_for

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

    # -- what became of it -------------------------------------------------------------------------------------
    async def judge(self, row: InstanceRow) -> None:
        """Find out what became of the current Run, and do what follows."""
        if self.current is None:
            run = await self._parts.writer.do(lambda store: store.run(row.run_id or ""))
            if run is None or run.state == "ended":
                return
            self.current = CurrentRun(self._parts, row, run)
        current = self.current
        await current.recall_secrets()
        evidence = await asyncio.to_thread(adoption.gather, current.files, current.run)
        verdict = adoption.judge(evidence)
        if verdict is Verdict.LOST and evidence.record is None and not current.is_old(LATE_KEEPER_S):
            verdict, evidence = await current.wait_for_keeper(LATE_KEEPER_S)
        if verdict is Verdict.ADOPT:
            try:
                await current.meet_keeper()
            except KeeperGone:
                evidence = await asyncio.to_thread(adoption.gather, current.files, current.run)
                verdict = adoption.judge_silence(evidence)
            else:
                self.trouble = None
                await self._adopted(row, current)
                return
        self.trouble = adoption.trouble(verdict, evidence)
        await self._follow(verdict, row, current, evidence)

    async def _follow(
        self, verdict: Verdict, row: InstanceRow, current: CurrentRun, evidence: Evidence
    ) -> None:
        match verdict:
            case Verdict.UNVERIFIABLE:
                logger.warning("%s: %s", self.name, self.trouble)
                self.look_again(current)
            case Verdict.FINISH:
                ended = evidence.exit or Exit()
                if row.state is State.STOPPING and adoption.survivors(ended):
                    return  # not confirmed: looked at again by whoever watches, or by the next stop
                await current.meet_keeper_to_release()
                await self.exited(row, ended)
            case Verdict.REPLACE:
                if await current.replace_keeper():
                    await self._adopted(row, current)
                else:
                    await self._lost(row, current, evidence)
            case _:
                await self._lost(row, current, evidence)

    async def _adopted(self, row: InstanceRow, current: CurrentRun) -> None:
        await current.started()
        await current.hold_spares()
        self.follow(current)
        run = None if row.state is State.STOPPING else current.run
        await remembering.of_a_run(self._parts, row, run)
        goes_on = {
            State.STARTING: ("start", self._resumed.start),
            State.STOPPING: ("stop", self._resumed.stop),
            State.PAUSED: ("pause", self._resumed.pause),
        }
        if row.state in goes_on:
            verb, work = goes_on[row.state]
            self._parts.tasks.start(f"{verb} {self.name}", _awaited(work))

    def follow(self, current: CurrentRun) -> None:
        """Fold its output as it comes, and settle it once it has ended; the same keeper is followed once."""
        assert current.link is not None
        if current.followed is current.link:
            return
        current.followed = current.link

        def on_output() -> None:
            current.tail.poke()
            current.scrubbing.poke()
            self.news.set()
            self._retention.poke()

        current.link.on_output = on_output
        current.link.on_disk = self.disk.changed
        self.disk.low = bool(current.link.facts.get("disk_low"))
        current.input.open()
        on_output()
        self._retention.begin()
        self._parts.tasks.start(f"watch {self.name}", self.watch(current))

    async def _make_room(self, segments: dict[str, int]) -> None:
        if self.current is not None and self.current.link is not None:
            with contextlib.suppress(KeeperGone):
                await self.current.link.ask("room", segments=segments)

    async def doubt(self, current: CurrentRun) -> None:
        """Let go of a keeper that does not answer, and look what that means; what was begun goes on by itself."""
        if current.link is not None:
            current.link.close()
            current.link = None
        evidence = await asyncio.to_thread(adoption.gather, current.files, current.run)
        self.trouble = adoption.trouble(adoption.judge_silence(evidence), evidence)
        self.look_again(current)

    def look_again(self, current: CurrentRun) -> None:
        """Judge a Run again in a while, without anybody asking."""
        if current.link is None:
            self._parts.tasks.start(f"watch {self.name}", self._later(current))

    async def _later(self, current: CurrentRun) -> None:
        await asyncio.sleep(AGAIN_S)
        if self.current is current and current.link is None:
            await self.watch(current)

    # -- its end -----------------------------------------------------------------------------------------------
    async def exited(self, row: InstanceRow, ended: Exit) -> None:
        """Keep an end that the keeper recorded."""
        policy = await self.comebacks.policy()
        event, cause = ending.meaning(row.state, ended, policy=policy.word)
        await self.settle(row, event, cause, ended)

    async def _lost(self, row: InstanceRow, current: CurrentRun, evidence: Evidence) -> None:
        detail = adoption.REBOOTED
        if evidence.same_boot:
            left = await asyncio.to_thread(
                leftovers.end, current.run.id, evidence.record, lock=current.files.lock
            )
            detail = left.describe()
        kind = "stop-forced" if row.state is State.STOPPING else "crashed"
        cause = {"kind": kind, "detail": f"lost: {detail}"}
        began = evidence.record is not None
        await self.settle(row, Event.LOST, cause, Exit(), rebooted=not evidence.same_boot, began=began)

    async def settle(
        self,
        row: InstanceRow,
        event: Event,
        cause: dict[str, Any],
        ended: Exit,
        *,
        rebooted: bool = False,
        began: bool = True,
    ) -> None:
        """Fold what the Run left, then keep its end, then let the keeper go: in this order nothing is lost."""
        assert self.current is not None
        current = self.current
        await self._parts.listeners.withdraw(self.id)
        await asyncio.to_thread(current.scrubbing.close)
        await current.tail.fold(closed=True)
        over = replace(
            current.run,
            state="ended",
            ended_at_ns=ended.ended_at_ns or self._parts.clock.wall_ns(),
            exit_code=ended.code,
            exit_signal=ended.signal,
        )
        after = lifecycle.step(self.name, state=row.state, event=event)
        history = await self.comebacks.after(row, after, over, ended, rebooted=rebooted, began=began)
        if history.parked is not None:
            cause = cause | {"parked": history.parked}
        await self.move(row, event, cause, run=over, history=history)
        self.current, self.trouble = None, None
        self.news.set()
        self._retention.poke()
        current.input.close()
        await current.let_go()
        self.comebacks.arm(history)

    async def move(
        self,
        row: InstanceRow,
        event: Event,
        cause: dict[str, Any],
        *,
        desired: str | None = None,
        run: RunRow | None = None,
        history: History | None = None,
    ) -> InstanceRow:
        """Take the table's step, and keep it with its cause; return the instance as it is then."""
        following = lifecycle.step(self.name, state=row.state, event=event)
        cause = self.current.known.clean_facts(cause) if self.current else cause
        transition = TransitionRow(
            instance_id=self.id,
            prior_state=row.state,
            new_state=following,
            cause=cause,
            at_ns=self._parts.clock.wall_ns(),
        )
        restart = row.restart if history is None else history.to_json()
        await self._parts.writer.do(
            lambda store: store.move(transition, desired=desired, run=run, restart=restart)
        )
        self.news.set()
        changed = replace(row, state=following, cause=cause, restart=restart, desired=desired or row.desired)
        changed = replace(changed, run_id=run.id if run else row.run_id)
        self._parts.settings.know(changed)
        return changed


async def _awaited(work: Callable[[], Awaitable[Any]]) -> None:
    await work()
