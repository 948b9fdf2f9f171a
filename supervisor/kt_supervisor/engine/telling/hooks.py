"""Hooks: an operator's own commands, run once the change that they are about is committed.

Laws: the table of events is the queue, and a cursor in the ledger says how far it has been worked off, so that a killed
engine runs every hook at least once; hooks of one instance run one after another; nothing waits for a hook, and none
gets more than its time, its share of output and its place in the room.
"""

import asyncio
import contextlib
import json
import logging
import shlex
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kt_ledger.event_documents import BREACH, HOOK, TRANSITION
from kt_ledger.records import EventRow, State
from kt_ledger.store import Store, StoreUnavailable
from kt_supervisor.engine import environment
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.spawn import Ran
from kt_supervisor.engine.telling import events
from kt_supervisor.engine.telling.bell import Bell

logger = logging.getLogger(__name__)

CURSOR = "hooks"
PAGE = 200
AT_ONCE = 4
MOST_WAITING = 100
WITHIN_S = 10.0
TAIL_BYTES = 2048
LONGEST_VARIABLE = 1000
AGAIN_S = 1.0
LOOK_EVERY_S = 60.0

ANY = "hooks.on_any"
BY_STATE = {
    State.RUNNING: "hooks.on_start",
    State.STOPPED: "hooks.on_stop",
    State.FAILED: "hooks.on_crash",
}


@dataclass(frozen=True, slots=True)
class Job:
    """One event, and the commands to run about it: setting and command line."""

    row: EventRow
    name: str
    commands: tuple[tuple[str, str], ...]


def settings_of(row: EventRow) -> tuple[str, ...]:
    """Return the settings that name a command for an event; none for most kinds."""
    if row.kind == BREACH:
        return ("hooks.on_breach", ANY)
    if row.kind != TRANSITION:
        return ()
    own = BY_STATE.get(row.document.get("new_state", ""))
    return (own, ANY) if own else (ANY,)


def variables(row: EventRow, setting: str) -> dict[str, str]:
    """Return what a hook is told in its environment."""
    said = row.document
    cause = said.get("cause")
    told = {
        "SEQ": row.seq,
        "KIND": row.kind,
        "HOOK": setting.removeprefix("hooks."),
        "INSTANCE": said.get("instance"),
        "INSTANCE_ID": row.instance_id,
        "AT": said.get("at"),
        "PRIOR_STATE": said.get("prior_state"),
        "NEW_STATE": said.get("new_state"),
        "CAUSE": cause.get("kind") if isinstance(cause, dict) else None,
        "DETAIL": cause.get("detail") if isinstance(cause, dict) else None,
    }
    return {f"KT_EVENT_{name}": _plain(value) for name, value in told.items() if value is not None}


def _plain(value: object) -> str:
    """Return a value as a variable can hold it: no NUL, no lone surrogate, no novel."""
    text = str(value)[:LONGEST_VARIABLE].replace("\0", "\ufffd")
    return text.encode("utf-8", "replace").decode()


class Hooks:
    """All hooks of one engine."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="hook")
        self._stop = threading.Event()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._room = asyncio.Semaphore(MOST_WAITING)
        self._lanes: dict[str, deque[Job]] = {}
        self._pending: set[int] = set()
        self._progress = Bell()
        self._examined: int | None = None
        self._saved = 0

    async def run(self) -> None:
        """Work off what happens, until cancelled."""
        while True:
            strokes = self._parts.writer.events.strokes
            try:
                more = await self._look()
            except StoreUnavailable as error:
                logger.warning("hooks wait: %s", error)
                await asyncio.sleep(AGAIN_S)
                continue
            if not more:
                await self._parts.writer.events.wait(strokes, within_s=LOOK_EVERY_S)

    async def end(self, within_s: float) -> None:
        """Let hooks finish for a while, then end those under way; they run again with the next engine."""
        with contextlib.suppress(TimeoutError, StoreUnavailable):
            async with asyncio.timeout(within_s):
                strokes = self._progress.strokes
                while not await self._is_done():
                    await self._progress.wait(strokes, within_s=within_s)
                    strokes = self._progress.strokes
        self._stop.set()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    async def _is_done(self) -> bool:
        if self._examined is None or self._pending:
            return self._examined is None
        return self._examined >= await self._parts.writer.do(lambda store: store.last_event())

    async def _look(self) -> bool:
        """Take a page of events; return whether there may be another."""
        if self._examined is None:
            self._examined = self._saved = await self._parts.writer.do(_begin)
        after = self._examined
        rows = await self._parts.writer.do(lambda store: store.events(after, PAGE))
        for row in rows:
            if settings_of(row):
                await self._take(row)
            self._examined = row.seq
        if any(settings_of(row) for row in rows):
            await self._save()
        self._progress.ring()
        return len(rows) == PAGE

    async def _take(self, row: EventRow) -> None:
        job = await asyncio.to_thread(self._job, row)
        if job is None:
            return
        await self._room.acquire()
        self._pending.add(row.seq)
        key = row.instance_id or ""
        if key in self._lanes:
            self._lanes[key].append(job)
            return
        self._lanes[key] = deque([job])
        self._parts.tasks.start(f"hooks of {job.name}", self._lane(key))

    def _job(self, row: EventRow) -> Job | None:
        name = row.document.get("instance")
        if not isinstance(name, str):
            return None
        try:
            commands = [(key, self._parts.settings.live(name, key)) for key in settings_of(row)]
        except Exception as error:
            # Settings broken by hand are an alarm of their own; telling of events to everybody else goes on.
            logger.warning("hooks of %s are not known: %s", name, error)
            return None
        found = tuple((key, command) for key, command in commands if isinstance(command, str))
        return Job(row, name, found) if found else None

    async def _lane(self, key: str) -> None:
        """Run the hooks of one instance, one after another."""
        lane = self._lanes[key]
        try:
            while lane:
                job = lane.popleft()
                try:
                    for setting, command in job.commands:
                        await self._run_one(job, setting, command)
                finally:
                    self._room.release()
                self._pending.discard(job.row.seq)
                await self._save_if_possible()
                self._progress.ring()
        finally:
            del self._lanes[key]

    async def _run_one(self, job: Job, setting: str, command: str) -> None:
        async with self._places:
            if self._stop.is_set():
                raise asyncio.CancelledError  # this engine ends: the next one runs it
            ran = await asyncio.get_running_loop().run_in_executor(
                self._pool, self._command, job, setting, command
            )
        if ran.cut_short:
            raise asyncio.CancelledError  # the same, again
        if ran.is_good:
            return
        logger.warning("%s of %s failed: %s", setting, job.name, _how(ran))
        facts = _failure(job, setting, ran)
        at_ns = self._parts.clock.wall_ns()
        try:
            await self._parts.writer.do(
                lambda store: store.add_event(HOOK, job.row.instance_id, facts, at_ns)
            )
        except StoreUnavailable as error:
            logger.warning("the failure of a hook is not kept: %s", error)

    def _command(self, job: Job, setting: str, command: str) -> Ran:
        try:
            argv = shlex.split(command)
        except ValueError as error:
            return Ran(error=f"got a command line that is not one ({error})")
        if not argv:
            return Ran(error="got an empty command line")
        given = json.dumps(events.document(job.row), ensure_ascii=True).encode() + b"\n"
        return self._parts.spawner.command(
            argv,
            given=given,
            folder=self._parts.files.home(job.name),
            variables=environment.for_hooks() | variables(job.row, setting),
            within_s=WITHIN_S,
            tail_bytes=TAIL_BYTES,
            stop=self._stop,
        )

    async def _save_if_possible(self) -> None:
        try:
            await self._save()
        except StoreUnavailable as error:
            logger.warning("hooks may run again: %s", error)

    async def _save(self) -> None:
        """Remember that all events up to here are worked off."""
        done = min(self._pending) - 1 if self._pending else self._examined
        if done is not None and done > self._saved:
            await self._parts.writer.do(lambda store: store.set_cursor(CURSOR, done))
            self._saved = max(self._saved, done)


def _begin(store: Store) -> int:
    """Return where to go on; what happened before there were hooks is nobody's business."""
    known = store.cursor(CURSOR)
    if known is None:
        known = store.last_event()
        store.set_cursor(CURSOR, known)
    return known


def _failure(job: Job, setting: str, ran: Ran) -> dict[str, Any]:
    return {
        "hook": setting,
        "about": job.row.seq,
        "how": _how(ran),
        "code": ran.code if ran.code is not None and ran.code >= 0 else None,
        "signal": -ran.code if ran.code is not None and ran.code < 0 else None,
        "timed_out": ran.timed_out,
        "output": ran.output.decode("utf-8", "replace"),
    }


def _how(ran: Ran) -> str:
    if ran.error is not None:
        return f"it could not be started: {ran.error}"
    if ran.timed_out:
        return f"it took longer than {WITHIN_S:g} s and was ended"
    if ran.code is not None and ran.code < 0:
        return f"it ended by signal {-ran.code}"
    return f"it exited with code {ran.code}"
