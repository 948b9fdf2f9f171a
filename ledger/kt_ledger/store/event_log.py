"""What happened, in one order: written in the transaction of the change itself, read from any number on.

Law: numbers are given one after another, without holes and never twice; a hole that a reader finds is what retention
has deleted.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from kt_ledger import event_documents
from kt_ledger.records import EventRow, SourceTotals, TransitionRow
from kt_ledger.store.interning import number_of
from kt_ledger.store.schema import LASTING, cursors, engine_events, instances
from kt_ledger.values import UsageEvent

_WRITTEN = "kt_events_written"
_INSERT = sa.insert(engine_events)
_NAME = sa.select(instances.c.name).where(instances.c.id == sa.bindparam("instance_id"))


@dataclass(frozen=True, slots=True)
class Retention:
    """How many events are kept: the latest of what only they say, and fewer of usage, which roll-ups hold anyway."""

    lasting: int = 100_000
    usage: int = 10_000
    every: int = 500  # numbers between two looks


RETENTION = Retention()


def append(
    connection: sa.Connection, kind: str, instance_id: str | None, document: Mapping[str, Any], *, at_ns: int
) -> int:
    """Write an event inside the caller's transaction; return its number."""
    known = instance_id is None or "instance" in document
    instance = None if known or instance_id is None else name_of(connection, instance_id)
    whole = event_documents.complete(document, instance=instance, at_ns=at_ns)
    text = json.dumps(whole, ensure_ascii=True, separators=(",", ":"))
    values = {"at_ns": at_ns, "instance_id": instance_id, "kind": kind, "document": text}
    inserted = connection.execute(_INSERT, values)
    seq = number_of(inserted)
    connection.info[_WRITTEN] = written(connection) + 1
    if seq % RETENTION.every == 0:
        prune(connection, seq, RETENTION)
    return seq


def written(connection: sa.Connection) -> int:
    """Return how many events this connection has written, those of failed transactions included."""
    return int(connection.info.get(_WRITTEN, 0))


def transition(connection: sa.Connection, moved: TransitionRow) -> int:
    """Write the event of a change of state."""
    name = name_of(connection, moved.instance_id) or ""
    document = event_documents.transition(name, moved)
    return append(connection, event_documents.TRANSITION, moved.instance_id, document, at_ns=moved.at_ns)


def usage(
    connection: sa.Connection, updates: Iterable[tuple[UsageEvent, SourceTotals]], *, at_ns: int
) -> None:
    """Write one event for each Run and source that a batch has added to."""
    for latest, added in updates:
        name = name_of(connection, latest.instance_id)
        document = event_documents.usage_update(name, latest, added)
        append(connection, event_documents.USAGE_UPDATE, latest.instance_id, document, at_ns=at_ns)


def prune(connection: sa.Connection, seq: int, retention: Retention) -> None:
    """Delete what is older than retention says; called at every `every`th number, so each time there is little."""
    usage_end = seq - retention.usage
    connection.execute(
        sa.delete(engine_events).where(
            engine_events.c.kind == event_documents.USAGE_UPDATE,
            engine_events.c.seq <= usage_end,
            engine_events.c.seq > usage_end - 2 * retention.every,
        )
    )
    lasting = sa.select(engine_events.c.seq).where(sa.text(LASTING)).order_by(engine_events.c.seq.desc())
    last = connection.execute(lasting.limit(1).offset(retention.lasting)).scalar()
    if last is not None:
        connection.execute(sa.delete(engine_events).where(sa.text(LASTING), engine_events.c.seq <= last))


def name_of(connection: sa.Connection, instance_id: str) -> str | None:
    """Return the name of an instance, removed ones included."""
    return connection.execute(_NAME, {"instance_id": instance_id}).scalar()


def read(
    connection: sa.Connection, *, after: int, limit: int, instance_id: str | None = None
) -> list[EventRow]:
    """Return the events above a number, oldest first."""
    query = sa.select(engine_events).where(engine_events.c.seq > after)
    if instance_id is not None:
        query = query.where(engine_events.c.instance_id == instance_id)
    found = connection.execute(query.order_by(engine_events.c.seq).limit(limit)).mappings()
    return [_row(row) for row in found]


def latest(connection: sa.Connection, *, limit: int, instance_id: str | None = None) -> list[EventRow]:
    """Return the latest events, oldest first."""
    query = sa.select(engine_events)
    if instance_id is not None:
        query = query.where(engine_events.c.instance_id == instance_id)
    found = connection.execute(query.order_by(engine_events.c.seq.desc()).limit(limit)).mappings()
    return [_row(row) for row in found][::-1]


def last(connection: sa.Connection) -> int:
    """Return the highest number that was ever given; 0 where there is none."""
    return connection.execute(sa.select(sa.func.max(engine_events.c.seq))).scalar() or 0


def cursor(connection: sa.Connection, name: str) -> int | None:
    """Return how far somebody has come."""
    return connection.execute(sa.select(cursors.c.seq).where(cursors.c.name == name)).scalar()


def set_cursor(connection: sa.Connection, name: str, seq: int) -> None:
    """Remember how far somebody has come."""
    insert = sqlite.insert(cursors).values(name=name, seq=seq)
    changed = {"seq": insert.excluded.seq}
    connection.execute(insert.on_conflict_do_update(index_elements=[cursors.c.name], set_=changed))


def _row(row: Mapping[Any, Any]) -> EventRow:
    return EventRow(**{**row, "document": json.loads(row["document"])})
