"""The disk cap of an instance's output: the oldest whole segments go first, over all its Runs.

Laws: of standard output nothing is deleted that the ledger has not durably folded; the segment that is written is never
deleted; what is about to be deleted is written down first, so that every reader is told, also after a crash in between.
Folders of Runs go once nothing of their output is left, or when there are more than `KEPT_RUNS`; never the latest one,
and none that a process still holds.
"""

import asyncio
import heapq
import json
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kt_ledger import fold_run
from kt_ledger.durable import replace_file
from kt_ledger.store import Store, StoreUnavailable
from kt_manifest.configuration import options, value_types
from kt_supervisor.engine import state_dir
from kt_supervisor.engine.output import run_logs
from kt_supervisor.engine.output.positions import Place
from kt_supervisor.engine.output.run_logs import STREAMS, KnownRun
from kt_supervisor.engine.output.segments import DELETED, EARLIER, Deleted, Segments, earlier_bytes
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run.run_records import read_json

logger = logging.getLogger(__name__)

KEPT_RUNS = 50
REST_S = 0.25
REST_OVER_S = 0.02
KEPT_ENDS = 256
MOST_SEGMENT_BYTES = 16 << 20
LEAST_SEGMENT_BYTES = 64 << 10


def cap_bytes(parts: Parts, name: str) -> int:
    """Return how much output an instance may keep on disk; the last good cap where it cannot be read now."""
    try:
        return value_types.bytes_in(parts.settings.text(name, options.LOGS_CAP))
    except Exception as error:
        # It was never started with another cap, or that one would be in force: it has no output yet.
        logger.warning("the disk cap of %s is not known now, the default holds: %s", name, error)
        return value_types.bytes_in(str(options.BY_KEY[options.LOGS_CAP].default))


def segment_limit_bytes(cap: int) -> int:
    """Return how long a segment gets: at least some eight make up the cap, since only whole ones are deleted."""
    return max(LEAST_SEGMENT_BYTES, min(MOST_SEGMENT_BYTES, cap // 8))


@dataclass(frozen=True, slots=True)
class Folded:
    """What the ledger holds of one Run's standard output."""

    segment: int
    ended: bool


@dataclass(slots=True)
class Stock:
    """The segments of one stream of one Run, oldest first: (number, bytes on disk with the index)."""

    run: KnownRun
    segments: Segments
    sizes: list[tuple[int, int]] = field(default_factory=list)

    def expendable(self, folded: Folded) -> Iterator[tuple[int, int, int, str]]:
        """Yield (time, number, size, stream) of what may go, oldest first."""
        for number, size in self.sizes if folded.ended else self.sizes[:-1]:
            if self.segments.stream == "out" and not folded.ended and number >= folded.segment:
                return
            yield self.segments.times(number).entry(0)[1], number, size, self.segments.stream


class Retention:
    """Keeps one instance within its cap; `poke` it when there was output."""

    def __init__(
        self,
        parts: Parts,
        instance_id: str,
        name: str,
        *,
        ask: Callable[[dict[str, int]], Awaitable[None]],
    ) -> None:
        """Keep one within its cap; `ask` tells the keeper of its Run how far its segments may go on."""
        self._parts = parts
        self._instance_id = instance_id
        self._name = name
        self.room: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._ask = ask
        self._strangers: set[str] = set()
        self._wanted = False
        self._working = False

    def begin(self) -> None:
        """Look soon, and tell a keeper that has been told nothing yet."""
        self._told = {}
        self.poke()

    def poke(self) -> None:
        """Look soon, without anybody waiting; many pokes are one."""
        self._wanted = True
        if not self._working:
            self._working = True
            self._parts.tasks.start(f"disk cap of {self._name}", self._work())

    async def _work(self) -> None:
        try:
            while self._wanted:
                self._wanted = False
                over = await self.keep()
                self._wanted |= over  # what could not go yet can once it is folded
                if self.room != self._told:
                    await self._ask(self.room)
                    self._told = self.room
                await asyncio.sleep(REST_OVER_S if over else REST_S)
        except (StoreUnavailable, OSError) as error:
            self._told = {}
            await self._ask({})  # a ledger that is away holds up no agent
            logger.warning("the output of %s is not kept within its cap now: %s", self._name, error)
        finally:
            self._working = False

    async def keep(self) -> bool:
        """Delete what is beyond the cap; return whether there was anything.

        Raises:
            StoreUnavailable, OSError: it is tried again at the next output.
        """
        cap, runs, stocks = await asyncio.to_thread(self._look)
        total = sum(size for stock in stocks for _, size in stock.sizes)
        segment_bytes = segment_limit_bytes(cap)
        wanted = cap - len(STREAMS) * segment_bytes  # so that each stream can begin another one
        over = total > wanted or len(runs) > KEPT_RUNS
        if over:
            folded = await self._parts.writer.do(lambda store: _folded(store, runs))
            await asyncio.to_thread(self._reduce, runs, stocks, folded, total - wanted)
            total = sum(size for stock in stocks for _, size in stock.sizes)
        self.room = room(stocks, cap - total, segment_bytes)
        return over

    def _look(self) -> tuple[int, list[KnownRun], list[Stock]]:
        runs = run_logs.numbered(self._parts.files, self._instance_id, strangers=self._strangers)
        return cap_bytes(self._parts, self._name), runs, [stock for run in runs for stock in stock_of(run)]

    def _reduce(
        self, runs: Sequence[KnownRun], stocks: Sequence[Stock], folded: dict[str, Folded], excess: int
    ) -> None:
        for number in sorted({run.number for run in runs}):
            chosen = [stock for stock in stocks if stock.run.number == number]
            excess -= delete_oldest(chosen, folded, excess)
        for at, run in enumerate(runs[:-1]):
            empty = not any(stock.sizes for stock in stocks if stock.run is run)
            over = folded[run.id].ended and (empty or at < len(runs) - KEPT_RUNS)
            if over and state_dir.is_held(run.files.lock) is not True:
                forget(run, runs[at + 1])


def room(stocks: Sequence[Stock], free: int, segment_bytes: int) -> dict[str, int]:
    """Return the highest segment that each stream of the latest Run may begin, so that `free` bytes suffice.

    Where nothing is free, none: the agent waits until what it printed is folded and the oldest of it has gone. Where
    nothing but the segments that are written is left, one more, however small the cap.
    """
    more = max(0, free) // (len(STREAMS) * segment_bytes)
    if all(len(stock.sizes) <= 1 for stock in stocks):
        more = max(more, 1)
    return {
        stock.segments.stream: (stock.sizes[-1][0] if stock.sizes else 1) + more
        for stock in stocks[-len(STREAMS) :]
    }


def stock_of(run: KnownRun) -> list[Stock]:
    """Return what a Run has on disk."""
    stocks = []
    for stream in STREAMS:
        segments = Segments(run.files, stream)
        _finish_deleting(segments)
        sizes = [
            (number, segments.size(number) + _index_bytes(segments, number)) for number in segments.numbers()
        ]
        stocks.append(Stock(run, segments, sizes))
    return stocks


def _index_bytes(segments: Segments, number: int) -> int:
    times = segments.times(number)
    times.refresh()
    return times.count * 16


def _folded(store: Store, runs: Sequence[KnownRun]) -> dict[str, Folded]:
    found = {}
    for run in runs:
        row = store.run(run.id)
        position = store.position(fold_run.log_name(run.id))
        found[run.id] = Folded(position.segment, row is None or row.state == "ended")
    return found


def delete_oldest(stocks: Sequence[Stock], folded: dict[str, Folded], excess: int) -> int:
    """Delete of one Run until `excess` bytes are free; return how many are."""
    freed = 0
    chosen: dict[str, list[int]] = {}
    queues = [stock.expendable(folded[stock.run.id]) for stock in stocks]
    for _, number, size, stream in heapq.merge(*queues):
        if freed >= excess:
            break
        chosen.setdefault(stream, []).append(number)
        freed += size
    for stock in stocks:
        if numbers := chosen.get(stock.segments.stream):
            delete(stock.segments, numbers)
            stock.sizes = stock.sizes[len(numbers) :]
    return freed


def delete(segments: Segments, numbers: Sequence[int]) -> None:
    """Write down that these segments, the oldest that there are, are gone; then delete them, oldest first."""
    said = segments.deleted()
    total, ends = said.bytes, dict(said.ends)
    for number in numbers:
        total += segments.size(number)
        ends[number] = total
    last = numbers[-1]
    size = segments.size(last)
    whole = size == 0 or segments.read(Place(last, size - 1), 1) == b"\n"
    ends = dict(sorted(ends.items())[-KEPT_ENDS:])
    _write_down(segments.files.root, {segments.stream: Deleted(last, total, whole, ends).to_json()})
    _finish_deleting(segments)


def _finish_deleting(segments: Segments) -> None:
    """Delete what was written down as deleted; an engine may have died between the two."""
    for number in segments.doomed():
        segments.files.segment(segments.stream, number).unlink(missing_ok=True)
        segments.files.index(segments.stream, number).unlink(missing_ok=True)


def forget(run: KnownRun, successor: KnownRun) -> None:
    """Delete a Run's folder, having written down in its successor's what went with it."""
    known = (read_json(successor.files.root / DELETED) or {}).get(EARLIER, {})
    if known.get("through") != run.number:
        kept = sum(Segments(run.files, s).size(n) for s in STREAMS for n in Segments(run.files, s).numbers())
        deleted = sum(Deleted.read(run.files, stream).bytes for stream in STREAMS)
        total = (earlier_bytes(run.files) or 0) + kept + deleted
        _write_down(successor.files.root, {EARLIER: {"through": run.number, "bytes": total}})
    shutil.rmtree(run.files.root)


def _write_down(folder: Any, facts: dict[str, Any]) -> None:
    known = read_json(folder / DELETED) or {}
    replace_file(folder / DELETED, json.dumps({**known, **facts}).encode())
