"""Calls as people ask for them: an exchange with the usage that was observed of it, and how the last one ended."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from kt_ledger.records import CallRow, Limited
from kt_ledger.store import rows
from kt_ledger.store.schema import IN_FLIGHT, LIMITED, accounts, events, exchanges, logs, scopes
from kt_ledger.values import Exchange, Source, UsageEvent

BEGUN_BEFORE = 1000
"""How many calls that began before a refused one are looked at for having ended after it."""

_EVENT = "event_"


def recent(
    connection: sa.Connection, instance_id: str, *, limit: int
) -> list[tuple[Exchange, UsageEvent | None]]:
    """Return the latest exchanges of an instance, oldest first, each with its observed event."""
    return [(row.exchange, row.event) for row in numbered(connection, instance_id, limit=limit)]


def numbered(
    connection: sa.Connection,
    instance_id: str,
    *,
    limit: int,
    after: int | None = None,
    before: int | None = None,
) -> list[CallRow]:
    """Return calls by the order in which they began: the latest (before a number), or the first after one."""
    some = sa.select(exchanges).where(exchanges.c.account == _account(instance_id))
    if before is not None:
        some = some.where(exchanges.c.seq < before)
    if after is None:
        some = some.order_by(exchanges.c.seq.desc())
    else:
        some = some.where(exchanges.c.seq > after).order_by(exchanges.c.seq)
    return _joined(connection, instance_id, some.limit(limit))


def among(connection: sa.Connection, instance_id: str, numbers: Sequence[int]) -> list[CallRow]:
    """Return those of an instance's calls that have these numbers."""
    some = sa.select(exchanges).where(
        exchanges.c.account == _account(instance_id), exchanges.c.seq.in_(numbers)
    )
    return _joined(connection, instance_id, some)


def _joined(connection: sa.Connection, instance_id: str, some: sa.Select[Any]) -> list[CallRow]:
    one = some.subquery()
    of_event = [column.label(_EVENT + column.name) for column in events.columns]
    joined = one.outerjoin(
        scopes,
        sa.and_(
            scopes.c.account == one.c.account,
            scopes.c.run_id == sa.func.coalesce(one.c.run_id, ""),
            scopes.c.source == Source.ENGINE_OBSERVED.value,
        ),
    ).outerjoin(events, sa.and_(events.c.scope == scopes.c.id, events.c.key == one.c.id))
    query = sa.select(one, *of_event).select_from(joined).order_by(one.c.seq)
    return [_row(dict(row), instance_id) for row in connection.execute(query).mappings()]


def _row(row: dict[Any, Any], instance_id: str) -> CallRow:
    call = rows.exchange({**row, "instance_id": instance_id})
    if row[_EVENT + "seq"] is None:
        return CallRow(seq=row["seq"], exchange=call, event=None)
    owner = {"instance_id": instance_id, "run_id": call.run_id, "source": Source.ENGINE_OBSERVED}
    facts = {name.removeprefix(_EVENT): value for name, value in row.items() if name.startswith(_EVENT)}
    return CallRow(seq=row["seq"], exchange=call, event=rows.event({**facts, **owner}))


def recent_events(connection: sa.Connection, instance_id: str, *, limit: int) -> list[UsageEvent]:
    """Return the latest events of usage of an instance, oldest first."""
    query = sa.select(events, accounts.c.instance_id, scopes.c.run_id, scopes.c.source)
    query = query.join(accounts, accounts.c.id == events.c.account).join(
        scopes, scopes.c.id == events.c.scope
    )
    query = query.where(events.c.account == _account(instance_id)).order_by(events.c.seq.desc()).limit(limit)
    return [rows.event(row) for row in connection.execute(query).mappings()][::-1]


def open_ones(connection: sa.Connection, log: str) -> list[Exchange]:
    """Return the exchanges of one journal that are still in flight, oldest first."""
    query = sa.select(exchanges, accounts.c.instance_id).join(accounts, accounts.c.id == exchanges.c.account)
    query = query.join(logs, logs.c.id == exchanges.c.log).where(logs.c.log == log, sa.text(IN_FLIGHT))
    # Sorted here: asked for an order, SQLite reads all calls in it rather than the few of the index.
    found = connection.execute(query).mappings()
    return [rows.exchange(row) for row in sorted(found, key=lambda row: row["seq"])]


def in_flight(connection: sa.Connection, instance_id: str, *, run_id: str | None) -> int:
    """Return how many exchanges of an instance, or of one Run of it, have begun and not ended."""
    query = _IN_FLIGHT if run_id is None else _IN_FLIGHT.where(exchanges.c.run_id == sa.bindparam("run_id"))
    return int(connection.execute(query, {"instance_id": instance_id, "run_id": run_id}).scalar_one())


def last_limited(connection: sa.Connection, run_id: str) -> Limited | None:
    """Return the provider's "later", where that is how the latest ended exchange of a Run ended.

    Only refusals are indexed by Run. Whether anything ended after one is seen in the few calls around it. What never
    left for the provider says nothing about it.
    """
    refused = sa.select(exchanges).where(
        exchanges.c.run_id == run_id, sa.text(LIMITED), exchanges.c.state == "ended", exchanges.c.sent != "no"
    )
    latest = refused.order_by(exchanges.c.ended_at_ns.desc(), exchanges.c.seq.desc()).limit(1)
    row = connection.execute(latest).mappings().first()
    if row is None:
        return None
    after = sa.select(exchanges.c.seq).where(
        exchanges.c.account == row["account"],
        exchanges.c.seq > row["seq"] - BEGUN_BEFORE,
        exchanges.c.run_id == run_id,
        exchanges.c.state == "ended",
        exchanges.c.sent != "no",
        exchanges.c.ended_at_ns > row["ended_at_ns"],
    )
    if connection.execute(after.limit(1)).first() is not None:
        return None
    return Limited(status=row["status"], ended_at_ns=row["ended_at_ns"], retry_at_ns=row["retry_at_ns"])


def _account(instance_id: str) -> sa.ScalarSelect[int]:
    return sa.select(accounts.c.id).where(accounts.c.instance_id == instance_id).scalar_subquery()


_IN_FLIGHT = (
    sa.select(sa.func.count())
    .select_from(exchanges)
    .where(sa.text(IN_FLIGHT))
    .where(
        exchanges.c.account
        == sa.select(accounts.c.id)
        .where(accounts.c.instance_id == sa.bindparam("instance_id"))
        .scalar_subquery()
    )
)
