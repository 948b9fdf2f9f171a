"""What agents said, read back: all Runs of an instance, both streams and the transitions, merged by time.

A line has the time at which its first byte was written (the index holds one entry a write). Reads lazily: memory is one
piece a stream, however long the logs are.
"""

import bisect
import heapq
import os
import struct
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kt_ledger.layout import RunLayout, StateLayout
from kt_ledger.records import TransitionRow
from kt_supervisor.engine.adoption import read_json

AGENT_STREAMS = {"out": "agent-out", "err": "agent-err"}
ENGINE = "engine"
PIECE_BYTES = 64 << 10
LINE_LIMIT_BYTES = 1 << 20
TAIL_BYTES = 4096
_ENTRY = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line; `at_ns` wall clock, `stream` as the contract names it."""

    at_ns: int
    stream: str
    text: str


class StreamCursor:
    """One stream of one Run, from its first line on; `lines` may be called again for what came since."""

    def __init__(self, files: RunLayout, stream: str) -> None:
        self._files = files
        self._stream = stream
        self._number = 1
        self._offset = 0
        self._rest = b""
        self._rest_at_ns = 0
        self._times: list[tuple[int, int]] = []
        self._times_read = 0

    def lines(self, *, final: bool) -> Iterator[LogLine]:
        """Yield the complete lines there are; `final`: nothing follows, so a last line needs no end."""
        while True:
            over = self._files.segment(self._stream, self._number + 1).exists()
            data = self._read()
            if data:
                yield from self._split(data)
            elif over:
                self._number += 1
                self._offset = self._times_read = 0
                self._times = []
            else:
                break
        if final and self._rest:
            yield self._line(self._rest_at_ns, self._rest)
            self._rest = b""

    def _split(self, data: bytes) -> Iterator[LogLine]:
        begin = self._offset
        self._read_times()
        self._offset += len(data)
        at = 0
        while (end := data.find(b"\n", at)) >= 0:
            at_ns = self._rest_at_ns if self._rest else self._time(begin + at)
            yield self._line(at_ns, self._rest + data[at:end])
            self._rest = b""
            at = end + 1
        if not self._rest and at < len(data):
            self._rest_at_ns = self._time(begin + at)
        # A line without end is shown in parts of this length: memory stays bounded.
        self._rest += data[at:]
        if len(self._rest) > LINE_LIMIT_BYTES:
            yield self._line(self._rest_at_ns, self._rest)
            self._rest = b""

    def _line(self, at_ns: int, data: bytes) -> LogLine:
        text = data.removesuffix(b"\r").decode("utf-8", "replace")
        return LogLine(at_ns, AGENT_STREAMS[self._stream], text)

    def _read(self) -> bytes:
        return _pread(self._files.segment(self._stream, self._number), self._offset, PIECE_BYTES)

    def _read_times(self) -> None:
        data = _pread(self._files.index(self._stream, self._number), self._times_read, 16 << 20)
        whole = data[: len(data) - len(data) % _ENTRY.size]
        self._times_read += len(whole)
        self._times += list(_ENTRY.iter_unpack(whole))

    def _time(self, offset: int) -> int:
        found = bisect.bisect_right(self._times, offset, key=lambda entry: entry[0])
        return self._times[max(found - 1, 0)][1] if self._times else 0


def merged(
    cursors: Sequence[StreamCursor], transitions: Sequence[TransitionRow], *, final: bool
) -> Iterator[LogLine]:
    """Yield all that is there, by time."""
    engine = (LogLine(row.at_ns, ENGINE, describe(row)) for row in transitions)
    streams = [cursor.lines(final=final) for cursor in cursors]
    yield from heapq.merge(engine, *streams, key=lambda line: line.at_ns)


def describe(row: TransitionRow) -> str:
    """Return a transition as one line."""
    rest = ", ".join(f"{key} {value}" for key, value in row.cause.items() if key != "kind")
    return f"{row.prior_state} -> {row.new_state} ({row.cause.get('kind', 'unknown')}{': ' if rest else ''}{rest})"


def runs_of(files: StateLayout, instance_id: str, *, apart_from: Container[str] = ()) -> list[RunLayout]:
    """Return the Runs of an instance whose folders are there, oldest first (their ids sort by time).

    Args:
        apart_from: names of folders that need not be looked at again.
    """
    try:
        folders = sorted(files.runs.iterdir())
    except FileNotFoundError:
        return []
    found = [RunLayout(folder) for folder in folders if folder.name not in apart_from]
    return [run for run in found if (owner(run) or {}).get("instance_id") == instance_id]


def owner(run: RunLayout) -> dict[str, object] | None:
    """Return whose Run this is: {instance_id, name}, as the engine wrote it before the keeper was started."""
    return read_json(owner_file(run))


def owner_file(run: RunLayout) -> Path:
    """Return the file that says whose Run this is; readable without the ledger."""
    return run.root / "owner.json"


def last_lines(files: RunLayout, *, limit: int = 10) -> list[str]:
    """Return the last lines of a Run, the error stream's after the other's."""
    found: list[str] = []
    for stream in AGENT_STREAMS:
        number = 1
        while files.segment(stream, number + 1).exists():
            number += 1
        path = files.segment(stream, number)
        size = path.stat().st_size if path.exists() else 0
        data = _pread(path, max(0, size - TAIL_BYTES), TAIL_BYTES)
        found += data.decode("utf-8", "replace").splitlines()[-limit:]
    return found[-limit:]


def _pread(path: Path, offset: int, limit_bytes: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, limit_bytes, offset)
    finally:
        os.close(descriptor)
