"""`logs [-f]`: the lines that are there, by time, and, for a follower, those that come until the agent ends."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from itertools import islice

from kt_ledger.layout import StateLayout
from kt_ledger.records import LIVE_STATES, TransitionRow
from kt_supervisor.engine import run_logs, views
from kt_supervisor.engine.instance import Instance
from kt_supervisor.engine.run_logs import AGENT_STREAMS, LogLine, StreamCursor
from kt_supervisor.engine.writer import Writer

BATCH = 500
LOOK_EVERY_S = 0.3


class Following:
    """One reader of one instance's logs."""

    def __init__(self, files: StateLayout, writer: Writer, instance: Instance) -> None:
        self._files = files
        self._writer = writer
        self._instance = instance
        self._cursors: dict[str, list[StreamCursor]] = {}
        self._transitions_shown = 0

    async def batches(self, *, follow: bool) -> AsyncIterator[bytes]:
        """Yield NDJSON, some lines at a time."""
        while True:
            self._instance.news.clear()
            live = await self._is_live() if follow else False
            transitions = await self._new_transitions()
            lines = await asyncio.to_thread(self._lines, transitions, not live)
            while batch := await asyncio.to_thread(self._encoded, lines):
                yield batch
            if not live:
                return
            with contextlib.suppress(TimeoutError):
                # The news may have been taken by another follower: nobody waits longer than this.
                await asyncio.wait_for(self._instance.news.wait(), LOOK_EVERY_S)

    async def _is_live(self) -> bool:
        return not self._instance.removed and (await self._instance.row()).state in LIVE_STATES

    async def _new_transitions(self) -> list[TransitionRow]:
        everything = await self._writer.do(lambda store: store.transitions(self._instance.id))
        new, self._transitions_shown = everything[self._transitions_shown :], len(everything)
        return new

    def _lines(self, transitions: list[TransitionRow], final: bool) -> Iterator[LogLine]:
        for run in run_logs.runs_of(self._files, self._instance.id, apart_from=self._cursors):
            self._cursors[run.root.name] = [StreamCursor(run, stream) for stream in AGENT_STREAMS]
        cursors = [cursor for pair in self._cursors.values() for cursor in pair]
        return run_logs.merged(cursors, transitions, final=final)

    def _encoded(self, lines: Iterator[LogLine]) -> bytes:
        return b"".join(self._line(line) for line in islice(lines, BATCH))

    def _line(self, line: LogLine) -> bytes:
        facts = {"schema_version": 1, "instance": self._instance.name, "stream": line.stream}
        facts |= {"at": views.moment(line.at_ns), "text": line.text}
        return json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
