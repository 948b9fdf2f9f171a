"""Instances and their Runs, as queries on the connection of a transaction."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from kt_ledger.records import InstanceRow, RunRow
from kt_ledger.store import NameTaken, rows
from kt_ledger.store.schema import instances, runs


def add(connection: sa.Connection, row: InstanceRow) -> None:
    """Insert a registration. Raises NameTaken among instances that were not removed."""
    if by_name(connection, row.name) is not None:
        raise NameTaken(
            f"agent {row.name}: is registered already — wanted a name that is free; "
            "choose another one, or remove that agent"
        )
    connection.execute(sa.insert(instances).values(**rows.instance_columns(row)))


def change(connection: sa.Connection, instance_id: str, **columns: object) -> None:
    """Change columns of one instance."""
    changed = connection.execute(sa.update(instances).where(instances.c.id == instance_id).values(**columns))
    assert changed.rowcount == 1, f"no instance {instance_id}"


def by_name(connection: sa.Connection, name: str) -> InstanceRow | None:
    """Return the instance of this name that was not removed."""
    return _one(connection, instances.c.name == name, instances.c.removed_at_ns.is_(None))


def by_id(connection: sa.Connection, instance_id: str) -> InstanceRow | None:
    """Return an instance, also one that was removed."""
    return _one(connection, instances.c.id == instance_id)


def live(connection: sa.Connection) -> list[InstanceRow]:
    """Return all instances that were not removed, by name."""
    query = sa.select(instances).where(instances.c.removed_at_ns.is_(None)).order_by(instances.c.name)
    return [rows.instance(row) for row in connection.execute(query).mappings()]


def removed(connection: sa.Connection, *, limit: int) -> list[InstanceRow]:
    """Return the instances that were removed last, latest first."""
    query = sa.select(instances).where(instances.c.removed_at_ns.is_not(None))
    query = query.order_by(instances.c.removed_at_ns.desc(), instances.c.id).limit(limit)
    return [rows.instance(row) for row in connection.execute(query).mappings()]


def save_run(connection: sa.Connection, run: RunRow) -> None:
    """Insert a Run, or replace the one of its id."""
    columns = rows.run_columns(run)
    insert = sqlite.insert(runs).values(**columns)
    replaced = {name: insert.excluded[name] for name in columns if name != "id"}
    connection.execute(insert.on_conflict_do_update(index_elements=[runs.c.id], set_=replaced))


def run(connection: sa.Connection, run_id: str) -> RunRow | None:
    """Return one Run."""
    row = connection.execute(sa.select(runs).where(runs.c.id == run_id)).mappings().first()
    return None if row is None else rows.run(row)


def unended_runs(connection: sa.Connection) -> list[RunRow]:
    """Return the Runs that are intended or live, oldest first."""
    query = sa.select(runs).where(sa.text("state != 'ended'")).order_by(runs.c.started_at_ns, runs.c.id)
    return [rows.run(row) for row in connection.execute(query).mappings()]


def _one(connection: sa.Connection, *where: Any) -> InstanceRow | None:
    row = connection.execute(sa.select(instances).where(*where)).mappings().first()
    return None if row is None else rows.instance(row)
