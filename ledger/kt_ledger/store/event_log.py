"""What happened, in one order: written in the transaction of the change itself, read from any number on.

Law: numbers are given one after another, without holes and never twice; a hole that a reader finds is what retention
has deleted.
"""

import json
from typing import Any

import sqlalchemy as sa

from kt_ledger import event_documents
from kt_ledger.records import EventRow, TransitionRow
from kt_ledger.store.interning import number_of
from kt_ledger.store.schema import engine_events, instances


def append(
    connection: sa.Connection, kind: str, instance_id: str | None, document: dict[str, Any], *, at_ns: int
) -> int:
    """Write an event inside the caller's transaction; return its number."""
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    inserted = connection.execute(
        sa.insert(engine_events).values(at_ns=at_ns, instance_id=instance_id, kind=kind, document=text)
    )
    return number_of(inserted)


def transition(connection: sa.Connection, moved: TransitionRow) -> int:
    """Write the event of a change of state."""
    name = name_of(connection, moved.instance_id) or ""
    document = event_documents.transition(name, moved)
    return append(connection, event_documents.TRANSITION, moved.instance_id, document, at_ns=moved.at_ns)


def name_of(connection: sa.Connection, instance_id: str) -> str | None:
    """Return the name of an instance, removed ones included."""
    return connection.execute(sa.select(instances.c.name).where(instances.c.id == instance_id)).scalar()


def read(
    connection: sa.Connection, *, after: int, limit: int, instance_id: str | None = None
) -> list[EventRow]:
    """Return the events above a number, oldest first."""
    query = sa.select(engine_events).where(engine_events.c.seq > after)
    if instance_id is not None:
        query = query.where(engine_events.c.instance_id == instance_id)
    found = connection.execute(query.order_by(engine_events.c.seq).limit(limit)).mappings()
    return [EventRow(**{**row, "document": json.loads(row["document"])}) for row in found]
