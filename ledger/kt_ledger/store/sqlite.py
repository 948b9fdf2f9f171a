"""The ledger in one SQLite file: one connection, one thread, one transaction a method."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kt_ledger import event_documents
from kt_ledger.clock import Clock
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
from kt_ledger.store import KEEP, Keep, Store, calls, event_log, noting, opening, registrations, rollups, rows
from kt_ledger.store.folding import fold
from kt_ledger.store.schema import (
    logs,
    transitions,
)
from kt_ledger.values import Exchange, Folded, Position, Source, UsageEvent


def open_store(path: Path, *, clock: Clock) -> Store:
    """Return the ledger at `path`, made if it is not there; use it from the thread that opened it.

    Raises:
        SchemaNewer: a later kt has written it.
        StoreUnavailable: it cannot be opened or is no ledger; nothing was made or changed.
    """
    return SqliteStore(path, clock=clock)


class SqliteStore:
    """`Store` on one exclusive connection."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._thread = threading.get_ident()
        self._connection = opening.connect(path)

    @property
    def engine(self) -> sa.Engine:
        """Return SQLAlchemy's engine, for those who measure."""
        return self._connection.engine

    def close(self) -> None:
        """Release the file."""
        self._here()
        with opening.translated(self._path, "close it"):
            opening.dispose(self._connection)

    def add_instance(self, row: InstanceRow) -> None:
        """Remember a registration. Raises NameTaken among instances that were not removed."""
        with self._transaction("register an instance") as connection:
            registrations.add(connection, row)
            document = event_documents.registered(row)
            event_log.append(
                connection, event_documents.REGISTERED, row.id, document, at_ns=row.created_at_ns
            )

    def instance(self, name: str) -> InstanceRow | None:
        """Return the instance of this name that was not removed."""
        with self._transaction("read an instance") as connection:
            return registrations.by_name(connection, name)

    def instance_by_id(self, instance_id: str) -> InstanceRow | None:
        """Return an instance, also one that was removed."""
        with self._transaction("read an instance") as connection:
            return registrations.by_id(connection, instance_id)

    def removed_instances(self, *, limit: int) -> list[InstanceRow]:
        """Return the instances that were removed last, latest first."""
        with self._transaction("read the removed instances") as connection:
            return registrations.removed(connection, limit=limit)

    def instances(self) -> list[InstanceRow]:
        """Return all instances that were not removed, by name."""
        with self._transaction("read the instances") as connection:
            return registrations.live(connection)

    def set_port(self, instance_id: str, port: int) -> None:
        """Remember the port of an instance's listener."""
        with self._transaction("keep a port") as connection:
            registrations.change(connection, instance_id, port=port)

    def remove_instance(self, instance_id: str, *, at_ns: int) -> None:
        """Free the name; all rows of usage stay under the id."""
        with self._transaction("remove an instance") as connection:
            registrations.change(connection, instance_id, removed_at_ns=at_ns)
            event_log.append(
                connection, event_documents.REMOVED, instance_id, {"instance_id": instance_id}, at_ns=at_ns
            )

    def move(
        self,
        transition: TransitionRow,
        *,
        desired: str | None = None,
        run: RunRow | None = None,
        restart: dict[str, Any] | Keep | None = KEEP,
    ) -> None:
        """Change an instance's state, keep the transition and its event, and write `run` (by id), all at once."""
        changed: dict[str, object] = {
            "state": transition.new_state.value,
            "cause": rows.cause(transition.cause),
        }
        if desired is not None:
            changed["desired"] = desired
        if run is not None:
            changed["run_id"] = run.id
        if restart is not KEEP:
            changed["restart"] = rows.cause(restart)
        with self._transaction("change an instance's state") as connection:
            registrations.change(connection, transition.instance_id, **changed)
            connection.execute(sa.insert(transitions).values(**rows.transition_columns(transition)))
            if run is not None:
                registrations.save_run(connection, run)
            event_log.transition(connection, transition)

    def set_restart(self, instance_id: str, restart: dict[str, Any] | None) -> None:
        """Remember what the restart machine remembers."""
        with self._transaction("keep what restarts remember") as connection:
            registrations.change(connection, instance_id, restart=rows.cause(restart))

    def set_memory(self, instance_id: str, kind: str | None) -> None:
        """Remember the kind of memory that is attached."""
        with self._transaction("keep what memory is attached") as connection:
            registrations.change(connection, instance_id, memory=kind)

    def add_event(self, kind: str, instance_id: str | None, document: dict[str, Any], at_ns: int) -> int:
        """Keep something that happened; return its number."""
        with self._transaction("keep an event") as connection:
            return event_log.append(connection, kind, instance_id, document, at_ns=at_ns)

    def events(self, after: int = 0, limit: int = 500, instance_id: str | None = None) -> list[EventRow]:
        """Return the events above a number, oldest first, of everybody or of one instance."""
        with self._transaction("read the events") as connection:
            return event_log.read(connection, after=after, limit=limit, instance_id=instance_id)

    def latest_events(self, *, limit: int, instance_id: str | None = None) -> list[EventRow]:
        """Return the latest events, oldest first, of everybody or of one instance."""
        with self._transaction("read the latest events") as connection:
            return event_log.latest(connection, limit=limit, instance_id=instance_id)

    def last_event(self) -> int:
        """Return the highest number that was ever given."""
        with self._transaction("read the last event") as connection:
            return event_log.last(connection)

    def cursor(self, name: str) -> int | None:
        """Return how far somebody has come in the events."""
        with self._transaction("read a cursor") as connection:
            return event_log.cursor(connection, name)

    def set_cursor(self, name: str, seq: int) -> None:
        """Remember how far somebody has come."""
        with self._transaction("keep a cursor") as connection:
            event_log.set_cursor(connection, name, seq)

    @property
    def events_written(self) -> int:
        """Return a number that grows with each event."""
        return event_log.written(self._connection)

    def transitions(self, instance_id: str) -> list[TransitionRow]:
        """Return an instance's history, oldest first."""
        query = (
            sa.select(transitions).where(transitions.c.instance_id == instance_id).order_by(transitions.c.seq)
        )
        with self._transaction("read an instance's history") as connection:
            return [rows.transition(row) for row in connection.execute(query).mappings()]

    def save_run(self, run: RunRow) -> None:
        """Insert or replace one Run."""
        with self._transaction("keep a Run") as connection:
            registrations.save_run(connection, run)

    def run(self, run_id: str) -> RunRow | None:
        """Return one Run."""
        with self._transaction("read a Run") as connection:
            return registrations.run(connection, run_id)

    def unended_runs(self) -> list[RunRow]:
        """Return the Runs that are intended or live, oldest first."""
        with self._transaction("read the Runs") as connection:
            return registrations.unended_runs(connection)

    def position(self, log: str) -> Position:
        """Return how far a log has been folded; the start where it never was."""
        with self._transaction("read a position") as connection:
            row = connection.execute(sa.select(logs).where(logs.c.log == log)).first()
        return Position() if row is None else Position(row.segment, row.offset, row.skipping)

    def fold(self, batch: Sequence[Folded]) -> list[UsageEvent]:
        """Commit events, exchanges, notes and positions together; return the events that were new."""
        with self._transaction("commit what was read of the logs") as connection:
            return fold(connection, batch, at_ns=self._clock.wall_ns())

    def open_exchanges(self, log: str) -> list[Exchange]:
        """Return the exchanges of one journal that are still in flight, oldest first."""
        with self._transaction("read the open exchanges") as connection:
            return calls.open_ones(connection, log)

    def totals(self, instance_id: str, *, run_id: str | None = None) -> dict[Source, SourceTotals]:
        """Return the sums by source, of an instance's whole life or of one Run; O(1) in the number of events."""
        with self._transaction("read the totals") as connection:
            return rollups.read(connection, instance_id, run_id=run_id)

    def summary(self, instance_id: str, *, run_id: str | None) -> UsageSummary:
        """Return what is known of an instance's usage and of one Run's, at one moment."""
        with self._transaction("read what was used") as connection:
            run: dict[str, Any] = {}
            if run_id is not None:
                run["run_totals"] = rollups.read(connection, instance_id, run_id=run_id)
                run["run_uncounted"] = noting.uncounted(connection, instance_id, run_id=run_id)
            return UsageSummary(
                totals=rollups.read(connection, instance_id, run_id=None),
                in_flight=calls.in_flight(connection, instance_id, run_id=None),
                uncounted=noting.uncounted(connection, instance_id, run_id=None),
                **run,
            )

    def in_flight(self, instance_id: str, *, run_id: str | None = None) -> int:
        """Return how many exchanges have begun and not ended."""
        with self._transaction("read what is in flight") as connection:
            return calls.in_flight(connection, instance_id, run_id=run_id)

    def notes(self, instance_id: str, *, run_id: str | None = None) -> NoteCounts:
        """Return the findings about an instance ("" for what belongs to none); `gap` includes missing sequences."""
        with self._transaction("read the findings") as connection:
            return noting.read_notes(connection, instance_id, run_id=run_id)

    def recent_events(self, instance_id: str, *, limit: int) -> list[UsageEvent]:
        """Return the latest events, oldest first."""
        with self._transaction("read the latest events") as connection:
            return calls.recent_events(connection, instance_id, limit=limit)

    def recent_calls(self, instance_id: str, limit: int) -> list[tuple[Exchange, UsageEvent | None]]:
        """Return the latest exchanges, oldest first, each with the usage that was observed of it."""
        with self._transaction("read the latest calls") as connection:
            return calls.recent(connection, instance_id, limit=limit)

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
        with self._transaction("read the calls") as connection:
            asked_again = calls.among(connection, instance_id, also) if also else []
            found = calls.numbered(connection, instance_id, limit=limit, after=after, before=before)
            return found, asked_again

    def last_limited(self, run_id: str) -> Limited | None:
        """Return the provider's "later", where that is how the latest ended exchange of a Run ended."""
        with self._transaction("read how the last call ended") as connection:
            return calls.last_limited(connection, run_id)

    def recent_exchanges(self, instance_id: str, *, limit: int) -> list[Exchange]:
        """Return the latest exchanges, oldest first."""
        with self._transaction("read the latest exchanges") as connection:
            return [call for call, _ in calls.recent(connection, instance_id, limit=limit)]

    def _here(self) -> None:
        assert threading.get_ident() == self._thread, (
            "the ledger is used from the thread that opened it, only"
        )

    @contextmanager
    def _transaction(self, wanted: str) -> Iterator[sa.Connection]:
        """Yield the connection inside BEGIN IMMEDIATE; commit, or roll back and say what could not be done."""
        self._here()
        with opening.translated(self._path, wanted), self._connection.begin():
            yield self._connection
