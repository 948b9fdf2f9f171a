"""Calls as people ask for them: an exchange with the usage that was observed of it, and how the last one ended."""

from typing import Any

import sqlalchemy as sa

from kt_ledger.records import Limited
from kt_ledger.store import rows
from kt_ledger.store.schema import LIMITED, accounts, events, exchanges, scopes
from kt_ledger.values import Exchange, Source, UsageEvent

BEGUN_BEFORE = 1000
"""How many calls that began before a refused one are looked at for having ended after it."""

_EVENT = "event_"


def recent(
    connection: sa.Connection, instance_id: str, *, limit: int
) -> list[tuple[Exchange, UsageEvent | None]]:
    """Return the latest exchanges of an instance, oldest first, each with its observed event."""
    latest = sa.select(exchanges).where(exchanges.c.account == _account(instance_id))
    one = latest.order_by(exchanges.c.seq.desc()).limit(limit).subquery()
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
    return [_pair(dict(row), instance_id) for row in connection.execute(query).mappings()]


def _pair(row: dict[Any, Any], instance_id: str) -> tuple[Exchange, UsageEvent | None]:
    call = rows.exchange({**row, "instance_id": instance_id})
    if row[_EVENT + "seq"] is None:
        return call, None
    owner = {"instance_id": instance_id, "run_id": call.run_id, "source": Source.ENGINE_OBSERVED}
    facts = {name.removeprefix(_EVENT): value for name, value in row.items() if name.startswith(_EVENT)}
    return call, rows.event({**facts, **owner})


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
