"""`logs [-f]`: the lines that are there, by time, and, for a follower, those that come until the agent ends."""

import asyncio
import base64
import contextlib
import datetime
import functools
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from kt_ledger.exit_codes import NOT_FOUND
from kt_ledger.layout import StateLayout
from kt_ledger.records import LIVE_STATES, InstanceRow, RunRow, TransitionRow
from kt_ledger.store import Store
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.instance.restart_policy import History
from kt_supervisor.engine.output import beginning, run_logs
from kt_supervisor.engine.output.beginning import Log, Query
from kt_supervisor.engine.output.reading import Reading, Shown
from kt_supervisor.engine.output.run_logs import KnownRun
from kt_supervisor.engine.problems import Refused
from kt_supervisor.engine.writer import Writer

BATCH = 500
BATCH_BYTES = 1 << 20
NANOSECONDS = 1_000_000_000
ENCODE = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `json.dumps` makes an encoder a call unless everything is as it prefers."""

LOOK_EVERY_S = 0.3


class Following:
    """One reader of one instance's logs."""

    def __init__(self, files: StateLayout, writer: Writer, instance: Instance, query: Query) -> None:
        self._files = files
        self._writer = writer
        self._instance = instance
        self._query = query
        self._runs: list[KnownRun] = []
        self._strangers: set[str] = set()
        self._reading: Reading | None = None
        self._pass_over = 0
        self._live = True

    async def batches(self) -> AsyncIterator[bytes]:
        """Yield NDJSON, some lines at a time.

        Raises:
            Refused: the Run that was asked for is not there.
        """
        async for shown in self.shown():
            yield b"".join(map(self._encoded, shown))

    async def shown(self) -> AsyncIterator[list[Shown]]:
        """Yield the lines themselves, some at a time; ends once the agent has ended, or nobody follows."""
        while True:
            self._instance.news.clear()
            log, new_runs = await self._look()
            lines = await asyncio.to_thread(self._lines, log, new_runs)
            while batch := await asyncio.to_thread(_some, lines):
                yield batch
            if not (self._live and self._query.follow):
                return
            with contextlib.suppress(TimeoutError):
                # The news may have been taken by another follower: nobody waits longer than this.
                await asyncio.wait_for(self._instance.news.wait(), LOOK_EVERY_S)

    async def _look(self) -> tuple[Log, list[KnownRun]]:
        seen = {run.id for run in self._runs}
        # The folders first: whether the last of them has ended is only then asked.
        found = await asyncio.to_thread(
            run_logs.numbered, self._files, self._instance.id, apart_from=seen, strangers=self._strangers
        )
        current = self._instance.current
        new = [
            replace(run, guard=current.scrubbing) if current is not None and run.id == current.run.id else run
            for run in found
            if not self._runs or run.number > self._runs[-1].number
        ]
        self._runs += new
        asked_for = self._query.run
        if asked_for is not None and asked_for not in {run.id for run in self._runs}:
            raise _no_such_run(self._instance.name, asked_for, self._runs)
        last = self._runs[-1].id if self._runs else ""
        row, run, transitions = await self._writer.do(lambda store: _read(store, self._instance, last))
        ended = run is None or run.state == "ended"
        goes_on = row is not None and (
            row.state in LIVE_STATES or History.from_json(row.restart).due is not None
        )
        self._live = not self._instance.removed and goes_on
        if not self._live and row is not None and row.run_id not in (None, last):
            self._live = self._files.run(
                row.run_id or ""
            ).root.exists()  # it began and ended since: look again
        log = Log(runs=self._runs, transitions=transitions, final=ended).within(asked_for)
        if asked_for is not None and log.final:
            self._live = False
        return log, [run for run in new if asked_for in (None, run.id)]

    def _lines(self, log: Log, new_runs: list[KnownRun]) -> Iterator[Shown]:
        if self._reading is None:
            self._reading, self._pass_over = beginning.begin(self._query, log)
        else:
            self._reading.add_runs(new_runs)
        unfinished = self._query.unfinished and not self._query.follow
        for shown in self._reading.lines(log.transitions, final=log.final, unfinished=unfinished):
            if self._pass_over:
                self._pass_over -= not shown.line.part and shown.line.gap is None
            else:
                yield shown

    def _encoded(self, shown: Shown) -> bytes:
        line = shown.line
        facts: dict[str, Any] = {"schema_version": 1, "instance": self._instance.name, "stream": shown.stream}
        second = _second(line.at_ns // NANOSECONDS)
        text = shown.text
        facts["at"] = f"{second}Z"
        facts["text"] = text
        facts["at_exact"] = f"{second}.{line.at_ns % NANOSECONDS:09d}Z"
        facts["run"] = shown.run.id if shown.run else None
        facts["position"] = str(shown.position)
        if line.part:
            facts["part"] = True
        if line.unfinished:
            facts["unfinished"] = True
        if line.gap is not None:
            facts["gap"] = {"missed_bytes": line.gap.missed_bytes, "runs": line.gap.runs}
        elif "\ufffd" in text and text.encode() != line.data.removesuffix(b"\r"):
            facts["bytes"] = base64.b64encode(line.data).decode()
        return ENCODE(facts).encode("utf-8", "replace") + b"\n"


def _some(lines: Iterator[Shown]) -> list[Shown]:
    """Return the next lines: not many, and not much of them, so that a reader costs little memory."""
    found: list[Shown] = []
    size = 0
    for line in islice(lines, BATCH):
        found.append(line)
        size += len(line.line.data)
        if size >= BATCH_BYTES:
            break
    return found


@functools.lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    """Return a wall-clock second as RFC 3339 in UTC, without the Z: most lines share theirs with the one before."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _read(
    store: Store, instance: Instance, run_id: str
) -> tuple[InstanceRow | None, RunRow | None, list[TransitionRow]]:
    row = store.instance(instance.name)
    same = row if row is not None and row.id == instance.id else None
    return same, store.run(run_id), store.transitions(instance.id)


def _no_such_run(name: str, run_id: str, runs: list[KnownRun]) -> Refused:
    there = ", ".join(run.id for run in runs[-3:]) or "none"
    return Refused(
        f"no output of run {run_id[:80]!r} of {name}: wanted one that is still on disk (the latest: {there}); "
        f"`kt agent logs {name} --json` says to which run a line belongs",
        code="no_such_run",
        exit_code=NOT_FOUND,
    )
