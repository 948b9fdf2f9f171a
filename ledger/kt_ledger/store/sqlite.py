"""The ledger in one SQLite file: one connection, one thread, one transaction a method."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from kt_ledger.clock import Clock
from kt_ledger.records import (
    EventRow,
    InstanceRow,
    Limited,
    NoteCounts,
    RunRow,
    SourceTotals,
    TransitionRow,
)
from kt_ledger.store import KEEP, Keep, NameTaken, Store, calls, event_log, opening, rows
from kt_ledger.store.folding import fold
from kt_ledger.store.noting import read_notes
from kt_ledger.store.rollups import by_source
from kt_ledger.store.schema import (
    accounts,
    events,
    exchanges,
    instance_totals,
    instances,
    logs,
    run_totals,
    runs,
    scopes,
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
            taken = connection.execute(
                sa.select(instances.c.id).where(
                    instances.c.name == row.name, instances.c.removed_at_ns.is_(None)
                )
            ).first()
            if taken is not None:
                raise NameTaken(
                    f"agent {row.name}: is registered already — wanted a name that is free; "
                    "choose another one, or remove that agent"
                )
            connection.execute(sa.insert(instances).values(**rows.instance_columns(row)))

    def instance(self, name: str) -> InstanceRow | None:
        """Return the instance of this name that was not removed."""
        query = sa.select(instances).where(instances.c.name == name, instances.c.removed_at_ns.is_(None))
        with self._transaction("read an instance") as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else rows.instance(row)

    def instances(self) -> list[InstanceRow]:
        """Return all instances that were not removed, by name."""
        query = sa.select(instances).where(instances.c.removed_at_ns.is_(None)).order_by(instances.c.name)
        with self._transaction("read the instances") as connection:
            return [rows.instance(row) for row in connection.execute(query).mappings()]

    def set_port(self, instance_id: str, port: int) -> None:
        """Remember the port of an instance's listener."""
        with self._transaction("keep a port") as connection:
            self._change(connection, instance_id, port=port)

    def remove_instance(self, instance_id: str, *, at_ns: int) -> None:
        """Free the name; all rows of usage stay under the id."""
        with self._transaction("remove an instance") as connection:
            self._change(connection, instance_id, removed_at_ns=at_ns)

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
            self._change(connection, transition.instance_id, **changed)
            connection.execute(sa.insert(transitions).values(**rows.transition_columns(transition)))
            if run is not None:
                _upsert_run(connection, run)
            event_log.transition(connection, transition)

    def set_restart(self, instance_id: str, restart: dict[str, Any] | None) -> None:
        """Remember what the restart machine remembers."""
        with self._transaction("keep what restarts remember") as connection:
            self._change(connection, instance_id, restart=rows.cause(restart))

    def set_memory(self, instance_id: str, kind: str | None) -> None:
        """Remember the kind of memory that is attached."""
        with self._transaction("keep what memory is attached") as connection:
            self._change(connection, instance_id, memory=kind)

    def add_event(self, kind: str, instance_id: str | None, document: dict[str, Any], at_ns: int) -> int:
        """Keep something that happened; return its number."""
        with self._transaction("keep an event") as connection:
            return event_log.append(connection, kind, instance_id, document, at_ns=at_ns)

    def events(self, after: int = 0, limit: int = 500, instance_id: str | None = None) -> list[EventRow]:
        """Return the events above a number, oldest first, of everybody or of one instance."""
        with self._transaction("read the events") as connection:
            return event_log.read(connection, after=after, limit=limit, instance_id=instance_id)

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
            _upsert_run(connection, run)

    def run(self, run_id: str) -> RunRow | None:
        """Return one Run."""
        with self._transaction("read a Run") as connection:
            row = connection.execute(sa.select(runs).where(runs.c.id == run_id)).mappings().first()
        return None if row is None else rows.run(row)

    def unended_runs(self) -> list[RunRow]:
        """Return the Runs that are intended or live, oldest first."""
        query = sa.select(runs).where(runs.c.state != "ended").order_by(runs.c.started_at_ns, runs.c.id)
        with self._transaction("read the Runs") as connection:
            return [rows.run(row) for row in connection.execute(query).mappings()]

    def position(self, log: str) -> Position:
        """Return how far a log has been folded; the start where it never was."""
        with self._transaction("read a position") as connection:
            row = connection.execute(sa.select(logs).where(logs.c.log == log)).first()
        return Position() if row is None else Position(row.segment, row.offset, row.skipping)

    def fold(self, batch: Sequence[Folded]) -> list[UsageEvent]:
        """Commit events, exchanges, notes and positions together; return the events that were new."""
        with self._transaction("commit what was read of the logs") as connection:
            return fold(connection, batch)

    def open_exchanges(self, log: str) -> list[Exchange]:
        """Return the exchanges of one journal that are still in flight, oldest first."""
        query = _exchanges().join(logs, logs.c.id == exchanges.c.log)
        query = query.where(logs.c.log == log, exchanges.c.state == "in_flight").order_by(exchanges.c.seq)
        with self._transaction("read the open exchanges") as connection:
            return [rows.exchange(row) for row in connection.execute(query).mappings()]

    def totals(self, instance_id: str, *, run_id: str | None = None) -> dict[Source, SourceTotals]:
        """Return the sums by source, of an instance's whole life or of one Run; O(1) in the number of events."""
        if run_id is None:
            query = sa.select(instance_totals).join(accounts, accounts.c.id == instance_totals.c.account)
            query = query.where(accounts.c.instance_id == instance_id)
        else:
            query = sa.select(scopes.c.source, run_totals).join(run_totals, run_totals.c.scope == scopes.c.id)
            query = query.join(accounts, accounts.c.id == scopes.c.account)
            query = query.where(accounts.c.instance_id == instance_id, scopes.c.run_id == run_id)
        with self._transaction("read the totals") as connection:
            return by_source(connection.execute(query).mappings())

    def in_flight(self, instance_id: str, *, run_id: str | None = None) -> int:
        """Return how many exchanges have begun and not ended."""
        query = sa.select(sa.func.count()).select_from(exchanges)
        query = query.join(accounts, accounts.c.id == exchanges.c.account)
        query = query.where(accounts.c.instance_id == instance_id, exchanges.c.state == "in_flight")
        if run_id is not None:
            query = query.where(exchanges.c.run_id == run_id)
        with self._transaction("read what is in flight") as connection:
            return int(connection.execute(query).scalar_one())

    def notes(self, instance_id: str, *, run_id: str | None = None) -> NoteCounts:
        """Return the findings about an instance ("" for what belongs to none); `gap` includes missing sequences."""
        with self._transaction("read the findings") as connection:
            return read_notes(connection, instance_id, run_id=run_id)

    def recent_events(self, instance_id: str, *, limit: int) -> list[UsageEvent]:
        """Return the latest events, oldest first."""
        query = sa.select(events, accounts.c.instance_id, scopes.c.run_id, scopes.c.source)
        query = query.join(accounts, accounts.c.id == events.c.account)
        query = query.join(scopes, scopes.c.id == events.c.scope)
        query = (
            query.where(events.c.account == _account(instance_id)).order_by(events.c.seq.desc()).limit(limit)
        )
        with self._transaction("read the latest events") as connection:
            return [rows.event(row) for row in connection.execute(query).mappings()][::-1]

    def recent_calls(self, instance_id: str, limit: int) -> list[tuple[Exchange, UsageEvent | None]]:
        """Return the latest exchanges, oldest first, each with the usage that was observed of it."""
        with self._transaction("read the latest calls") as connection:
            return calls.recent(connection, instance_id, limit=limit)

    def last_limited(self, run_id: str) -> Limited | None:
        """Return the provider's "later", where that is how the latest ended exchange of a Run ended."""
        with self._transaction("read how the last call ended") as connection:
            return calls.last_limited(connection, run_id)

    def recent_exchanges(self, instance_id: str, *, limit: int) -> list[Exchange]:
        """Return the latest exchanges, oldest first."""
        query = _exchanges().where(exchanges.c.account == _account(instance_id))
        query = query.order_by(exchanges.c.seq.desc()).limit(limit)
        with self._transaction("read the latest exchanges") as connection:
            return [rows.exchange(row) for row in connection.execute(query).mappings()][::-1]

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

    def _change(self, connection: sa.Connection, instance_id: str, **columns: object) -> None:
        changed = connection.execute(
            sa.update(instances).where(instances.c.id == instance_id).values(**columns)
        )
        assert changed.rowcount == 1, f"no instance {instance_id}"


def _upsert_run(connection: sa.Connection, run: RunRow) -> None:
    columns = rows.run_columns(run)
    insert = sqlite.insert(runs).values(**columns)
    replaced = {name: insert.excluded[name] for name in columns if name != "id"}
    connection.execute(insert.on_conflict_do_update(index_elements=[runs.c.id], set_=replaced))


def _exchanges() -> sa.Select[tuple[object, ...]]:
    return sa.select(exchanges, accounts.c.instance_id).join(accounts, accounts.c.id == exchanges.c.account)


def _account(instance_id: str) -> sa.ScalarSelect[int]:
    return sa.select(accounts.c.id).where(accounts.c.instance_id == instance_id).scalar_subquery()
