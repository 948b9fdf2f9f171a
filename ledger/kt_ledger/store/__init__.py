"""The ledger's memory: the only room that knows SQL.

`Store` is what the engine needs from it. Every method is synchronous and is called from the one writer thread.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, Protocol

from kt_ledger.records import (
    CallRow,
    EventRow,
    InstanceRow,
    Limited,
    NoteCounts,
    RunRow,
    SourceTotals,
    TransitionRow,
    UsageSummary,
)
from kt_ledger.values import Exchange, Folded, Position, Source, UsageEvent


class Keep(Enum):
    """The one value of `KEEP`."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP
"""Leave a column as it is, where None would empty it."""


class StoreUnavailable(Exception):
    """The ledger cannot be read or written: the message says what was tried, what happened, and what to do."""


class SchemaNewer(StoreUnavailable):
    """The ledger was written by a later version of kt; nothing was changed."""


class NameTaken(Exception):
    """An instance of this name exists."""


class PositionMoved(Exception):
    """A batch began elsewhere than at the stored position: nothing was committed; read again from the stored one."""


class Store(Protocol):
    """One transaction a method; a method that raises has changed nothing."""

    def close(self) -> None:
        """Release the file."""

    # -- instances and Runs ------------------------------------------------------------------------------------
    def add_instance(self, row: InstanceRow) -> None:
        """Remember a registration. Raises NameTaken among instances that were not removed."""

    def instance(self, name: str) -> InstanceRow | None:
        """Return the instance of this name that was not removed."""

    def instance_by_id(self, instance_id: str) -> InstanceRow | None:
        """Return an instance, also one that was removed."""

    def removed_instances(self, *, limit: int) -> list[InstanceRow]:
        """Return the instances that were removed last, latest first."""

    def instances(self) -> list[InstanceRow]:
        """Return all instances that were not removed, by name."""

    def set_port(self, instance_id: str, port: int) -> None:
        """Remember the port of an instance's listener."""

    def remove_instance(self, instance_id: str, *, at_ns: int) -> None:
        """Free the name; all rows of usage stay under the id."""

    def move(
        self,
        transition: TransitionRow,
        *,
        desired: str | None = None,
        run: RunRow | None = None,
        restart: dict[str, Any] | Keep | None = KEEP,
    ) -> None:
        """Change an instance's state, keep the transition and its event, and write `run` (by id), all at once."""

    def set_restart(self, instance_id: str, restart: dict[str, Any] | None) -> None:
        """Remember what the restart machine remembers; the ledger reads nothing in it."""

    def set_memory(self, instance_id: str, kind: str | None) -> None:
        """Remember the kind of memory that is attached; None where it is detached."""

    def transitions(self, instance_id: str) -> list[TransitionRow]:
        """Return an instance's history, oldest first."""

    def save_run(self, run: RunRow) -> None:
        """Insert or replace one Run."""

    def run(self, run_id: str) -> RunRow | None:
        """Return one Run."""

    def unended_runs(self) -> list[RunRow]:
        """Return the Runs that are intended or live."""

    # -- what happened ------------------------------------------------------------------------------------------
    def add_event(self, kind: str, instance_id: str | None, document: dict[str, Any], at_ns: int) -> int:
        """Keep something that happened; return its number, one above the event's before it."""

    def events(self, after: int = 0, limit: int = 500, instance_id: str | None = None) -> list[EventRow]:
        """Return the events above a number, oldest first, of everybody or of one instance.

        Numbers have no holes but those that retention made. What every event says (`event_documents.complete`) is
        added to what was given.
        """

    def latest_events(self, *, limit: int, instance_id: str | None = None) -> list[EventRow]:
        """Return the latest events, oldest first, of everybody or of one instance."""

    def last_event(self) -> int:
        """Return the highest number that was ever given; 0 where there is none."""

    def cursor(self, name: str) -> int | None:
        """Return how far somebody has come in the events; None where nobody of that name has begun."""

    def set_cursor(self, name: str, seq: int) -> None:
        """Remember how far somebody has come."""

    @property
    def events_written(self) -> int:
        """Return a number that grows with each event; it says that there is something to read, not what."""

    # -- logs into events --------------------------------------------------------------------------------------
    def position(self, log: str) -> Position:
        """Return how far a log has been folded; the start where it never was."""

    def fold(self, batch: Sequence[Folded]) -> list[UsageEvent]:
        """Commit events, exchanges, notes and positions together; return the events that were new.

        The same event again (instance, run, source, key) is counted once. A sentinel event that disagrees with the
        one already there becomes a `conflict` note, the first one counts; one that agrees becomes a `replay` note.
        An exchange of the same id replaces what was known (in flight, then ended) and never goes back; an exchange
        `unknown: gateway_died` is replaced by a real close, with the totals put right (the replacement is among the
        events returned). A sentinel event below the highest sequence of its Run becomes a `late` note; sequence
        numbers that are missing are not stored but derived, and heal when they arrive (`notes`).

        Raises:
            PositionMoved: a batch's `start` is not the stored position of its log.
        """

    def open_exchanges(self, log: str) -> list[Exchange]:
        """Return the exchanges of one journal that are still in flight, oldest first."""

    # -- reading ----------------------------------------------------------------------------------------------
    def totals(self, instance_id: str, *, run_id: str | None = None) -> dict[Source, SourceTotals]:
        """Return the sums by source, of an instance's whole life or of one Run; O(1) in the number of events."""

    def summary(self, instance_id: str, *, run_id: str | None) -> UsageSummary:
        """Return what is known of an instance's usage and of one Run's, at one moment; findings by kind are not."""

    def in_flight(self, instance_id: str, *, run_id: str | None = None) -> int:
        """Return how many exchanges have begun and not ended."""

    def notes(self, instance_id: str, *, run_id: str | None = None) -> NoteCounts:
        """Return the findings about an instance ("" for what belongs to none); `gap` includes missing sequences."""

    def recent_events(self, instance_id: str, *, limit: int) -> list[UsageEvent]:
        """Return the latest events, oldest first."""

    def recent_calls(self, instance_id: str, limit: int) -> list[tuple[Exchange, UsageEvent | None]]:
        """Return the latest exchanges, oldest first, each with the usage that was observed of it."""

    def numbered_calls(
        self,
        instance_id: str,
        *,
        limit: int,
        after: int | None = None,
        before: int | None = None,
        also: Sequence[int] = (),
    ) -> tuple[list[CallRow], list[CallRow]]:
        """Return the latest calls (before a number), or the first ones after one; and those numbered `also`."""

    def last_limited(self, run_id: str) -> Limited | None:
        """Return the provider's "later", where that is how the latest ended exchange of a Run ended."""

    def recent_exchanges(self, instance_id: str, *, limit: int) -> list[Exchange]:
        """Return the latest exchanges, oldest first."""
