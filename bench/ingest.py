"""How many events a second become durable: real log bytes through the readers into a real SQLite file.

    python -m bench.ingest [--events N] [--dir DIR]

Prints one line for people and one JSON document. `statement_ms` is the longest single statement, commits apart.
"""

import argparse
import json
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import sqlalchemy as sa

from kt_ledger import ids, journal
from kt_ledger.clock import SystemClock
from kt_ledger.fold_journal import JournalReader
from kt_ledger.fold_run import RunReader
from kt_ledger.layout import RunLayout, journal_segment
from kt_ledger.reading import LogReader, read_log
from kt_ledger.store.sqlite import SqliteStore


def main() -> None:
    """Measure both kinds of log and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--dir", type=Path, default=None, help="where the files go; a disk, not a tmpfs")
    asked = parser.parse_args()
    figures = {"events": asked.events, "sqlite": sqlite3.sqlite_version}
    folder = Path(tempfile.mkdtemp(prefix="kt-bench-", dir=asked.dir))
    try:
        figures["sentinel"] = _measure(folder / "sentinel", asked.events, _sentinel)
        figures["observed"] = _measure(folder / "observed", asked.events, _observed)
    finally:
        shutil.rmtree(folder)
    rates = ", ".join(
        f"{kind} {figures[kind]['committed_per_s']:,} committed/s, {figures[kind]['per_s']:,} with reading"
        for kind in ("sentinel", "observed")
    )
    print(f"ingest: {rates} (durable, {asked.events:,} each)")
    print(json.dumps(figures))


def _sentinel(folder: Path, events: int) -> tuple[LogReader, Callable[[int], Path]]:
    layout = RunLayout(folder)
    with layout.segment("out", 1).open("wb") as log:
        for n in range(events):
            log.write(
                b'some output\nKTESIO_USAGE {"sequence":%d,"input_tokens":1280,"output_tokens":77}\n' % n
            )
    return RunReader("instance", "run"), lambda number: layout.segment("out", number)


def _observed(folder: Path, events: int) -> tuple[LogReader, Callable[[int], Path]]:
    with journal_segment(folder, 1).open("wb") as log:
        for _ in range(events):
            log.write(b"".join(_call(ids.new_id())))
    return JournalReader("incarnation"), lambda number: journal_segment(folder, number)


def _call(x: str) -> Iterator[bytes]:
    begun = {"x": x, "instance": "instance", "run": "run", "method": "POST", "path": "/v1/chat/completions"}
    begun["family"] = "chat.completions"
    yield journal.frame(
        journal.OPEN, {**begun, "at_ns": 10**18, "model": "m", "stream": True, "request_bytes": 900}
    )
    yield journal.frame(journal.SENT, {"x": x})
    closed = {"at_ns": 10**18 + 10**9, "opened_at_ns": 10**18, "status": 200, "completeness": "exact"}
    measured = {
        "counts": {"input": 1280, "output": 77},
        "raw_usage": '{"prompt_tokens":1280}',
        "model": "m-1",
    }
    sizes = {"request_bytes": 900, "response_bytes": 9000, "latency_ns": 10**9, "sent": "yes"}
    yield journal.frame(journal.CLOSE, {**begun, **closed, **measured, **sizes})


def _measure(
    folder: Path, events: int, write: Callable[[Path, int], tuple[LogReader, Callable[[int], Path]]]
) -> dict[str, float]:
    folder.mkdir()
    reader, path_of = write(folder, events)
    store = SqliteStore(folder / "ledger.db", clock=SystemClock())
    longest = _Longest(store.engine)
    commits = counted = 0
    began = time.perf_counter()
    cpu = time.process_time()
    folding = 0.0
    for folded in read_log(reader, path_of, clock=SystemClock(), closed=True):
        asked = time.perf_counter()
        counted += len(store.fold([folded]))
        folding += time.perf_counter() - asked
        commits += 1
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    store.close()
    assert counted == events, (counted, events)
    return {
        "per_s": round(events / elapsed),
        "committed_per_s": round(events / folding),
        "cpu_us_per_event": round(cpu / events * 1e6, 1),
        "commits": commits,
        "ms_per_commit": round(elapsed / commits * 1e3, 1),
        "statement_ms": round(longest.seconds * 1e3, 2),
    }


class _Longest:
    """The longest statement; an executemany counts as its statements' mean, since SQLite runs them one by one."""

    def __init__(self, engine: sa.Engine) -> None:
        self.seconds = 0.0
        self._began = 0.0
        sa.event.listen(engine, "before_cursor_execute", self._before)
        sa.event.listen(engine, "after_cursor_execute", self._after)

    def _before(self, *_: object) -> None:
        self._began = time.perf_counter()

    def _after(self, _c: object, _cu: object, _s: str, parameters: object, _x: object, many: bool) -> None:
        statements = len(parameters) if many and isinstance(parameters, list) else 1
        self.seconds = max(self.seconds, (time.perf_counter() - self._began) / statements)


if __name__ == "__main__":
    main()
