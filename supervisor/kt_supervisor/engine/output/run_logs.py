"""The Runs of an instance on disk: whose a folder is, which came first, and what a Run said last."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Protocol

from kt_ledger.layout import RunLayout, StateLayout
from kt_supervisor.engine.output.positions import Place
from kt_supervisor.engine.output.segments import Segments
from kt_supervisor.engine.run import run_records

STREAMS = ("out", "err")
TAIL_BYTES = 4096


class Guard(Protocol):
    """What stands before the output of a Run under way: nothing is read that it has not looked at."""

    def segments(self, stream: str) -> Segments:
        """Return one stream as it may be read."""
        ...


@dataclass(frozen=True, slots=True)
class KnownRun:
    """One Run whose folder is there; `number` counts the Runs of its instance from 1 and is never given twice.

    `guard` is there while the Run is under way.
    """

    number: int
    files: RunLayout
    guard: Guard | None = None

    @property
    def id(self) -> str:
        """Return its id."""
        return self.files.root.name

    def segments(self, stream: str) -> Segments:
        """Return what it printed to one stream, as it may be read."""
        return Segments(self.files, stream) if self.guard is None else self.guard.segments(stream)


def runs_of(files: StateLayout, instance_id: str) -> list[RunLayout]:
    """Return the Runs of an instance whose folders are there, oldest first."""
    return [run.files for run in numbered(files, instance_id)]


def numbered(
    files: StateLayout,
    instance_id: str,
    *,
    apart_from: Container[str] = (),
    strangers: set[str] | None = None,
) -> list[KnownRun]:
    """Return the same with their numbers. Ids sort by the wall clock, which may have been set back: numbers do not.

    Args:
        files: the state directory.
        instance_id: whose Runs.
        apart_from: names of folders that need not be looked at again.
        strangers: the same, and gets the names of other instances' folders.
    """
    strangers = set() if strangers is None else strangers
    try:
        names = sorted(path.name for path in files.runs.iterdir())
    except FileNotFoundError:
        return []
    found: list[KnownRun] = []
    for name in names:
        if name in apart_from or name in strangers:
            continue
        run = files.run(name)
        whose = run_records.owner(run) or {}
        if whose.get("instance_id") == instance_id:
            number = whose.get("number")
            found.append(KnownRun(number if isinstance(number, int) else len(found) + 1, run))
        elif whose:
            strangers.add(name)
    return sorted(found, key=lambda run: run.number)


def next_number(files: StateLayout, instance_id: str) -> int:
    """Return the number of the next Run: the latest Run's folder is never deleted before the instance."""
    return max((run.number for run in numbered(files, instance_id)), default=0) + 1


def last_lines(run: KnownRun, *, limit: int = 10) -> list[str]:
    """Return the last lines of a Run, the error stream's after the other's."""
    found: list[str] = []
    for stream in STREAMS:
        segments = run.segments(stream)
        numbers = segments.numbers()
        if numbers:
            size = segments.size(numbers[-1])
            data = segments.read(Place(numbers[-1], max(0, size - TAIL_BYTES)), TAIL_BYTES) or b""
            found += data.decode("utf-8", "replace").splitlines()[-limit:]
    return found[-limit:]
