"""Between SQL's rows and the ledger's values, both ways; knows columns, runs nothing."""

import json
from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from kt_ledger.records import InstanceRow, RunRow, State, TransitionRow
from kt_ledger.store.natural import SQLITE_INTEGER_LIMIT
from kt_ledger.values import (
    UNITS,
    Completeness,
    Counts,
    Exchange,
    Reason,
    Sent,
    Source,
    UsageEvent,
)

Row = Mapping[Any, Any]

_EXCHANGE_FIELDS = tuple(f.name for f in fields(Exchange) if f.name not in ("id", "instance_id"))
EXCHANGE_COLUMNS = ("id", "account", "log", "rank", *_EXCHANGE_FIELDS)
"""The columns of an exchange, in the order of `exchange_values`."""

_EVENT_FACTS = (
    "model_asked",
    "model_answered",
    "provider",
    "service_tier",
    "request_id",
    "raw_usage",
    "started_at_ns",
    "ended_at_ns",
)
EVENT_COLUMNS = ("account", "scope", "key", "id", *UNITS, "completeness", "reason", *_EVENT_FACTS)
"""The columns of an event, in the order of `event_values`."""

unit_values = attrgetter(*UNITS)
"""Return the counts of all units, in the order of UNITS."""

_exchange_facts = attrgetter(*_EXCHANGE_FIELDS)

LOST = frozenset({Reason.GATEWAY_DIED.value, Reason.MAY_NOT_HAVE_BEEN_SENT.value})
"""The reasons that we gave ourselves when a journal ended too early: a real close puts them right."""


def instance_columns(row: InstanceRow) -> dict[str, Any]:
    """Return the columns of a registration."""
    columns = {f.name: getattr(row, f.name) for f in fields(InstanceRow)}
    columns["state"] = row.state.value
    columns["cause"] = cause(row.cause)
    columns["restart"] = cause(row.restart)
    return columns


def cause(value: dict[str, Any] | None) -> str | None:
    """Return a cause, or another small document, as JSON text."""
    return None if value is None else json.dumps(value, ensure_ascii=True)


def transition_columns(row: TransitionRow) -> dict[str, Any]:
    """Return the columns of a change of state."""
    columns = {f.name: getattr(row, f.name) for f in fields(TransitionRow)}
    return {
        **columns,
        "prior_state": row.prior_state.value,
        "new_state": row.new_state.value,
        "cause": cause(row.cause),
    }


def instance(row: Row) -> InstanceRow:
    """Return a registration."""
    columns = dict(row)
    columns["state"] = State(columns["state"])
    for name in ("cause", "restart"):
        columns[name] = None if columns[name] is None else json.loads(columns[name])
    return InstanceRow(**columns)


def run_columns(row: RunRow) -> dict[str, Any]:
    """Return the columns of a Run."""
    return {f.name: getattr(row, f.name) for f in fields(RunRow)}


def run(row: Row) -> RunRow:
    """Return a Run."""
    return RunRow(**row)


def transition(row: Row) -> TransitionRow:
    """Return a change of state."""
    return TransitionRow(
        instance_id=row["instance_id"],
        prior_state=State(row["prior_state"]),
        new_state=State(row["new_state"]),
        cause=json.loads(row["cause"]),
        at_ns=row["at_ns"],
    )


def event_values(event: UsageEvent, *, account: int, scope: int) -> tuple[Any, ...]:
    """Return an event as the driver takes it, in the order of EVENT_COLUMNS."""
    return (
        account,
        scope,
        event.key,
        event.id,
        # `schema.stored`, written out: this line runs thirteen times for each event.
        *[v if v is None or v < SQLITE_INTEGER_LIMIT else str(v) for v in unit_values(event.counts)],
        event.completeness.value,
        event.reason,
        event.model_asked,
        event.model_answered,
        event.provider,
        event.service_tier,
        event.request_id,
        event.raw_usage,
        event.started_at_ns,
        event.ended_at_ns,
    )


def event(row: Row) -> UsageEvent:
    """Return an event; `row` also carries `instance_id`, `run_id` and `source` of its account and scope."""
    return UsageEvent(
        id=row["id"],
        instance_id=row["instance_id"],
        run_id=row["run_id"] or None,
        source=Source(row["source"]),
        key=row["key"],
        counts=counts(row),
        completeness=Completeness(row["completeness"]),
        reason=row["reason"],
        **{name: row[name] for name in _EVENT_FACTS},
    )


def counts(row: Row) -> Counts:
    """Return the counts among a row's columns."""
    return Counts(**{unit: row[unit] for unit in UNITS})


def rank(exchange: Exchange) -> int:
    """Return how much is known of an exchange: 0 open, 1 sent, 2 lost with its gateway, 3 closed."""
    if exchange.state == "in_flight":
        return 1 if exchange.sent is Sent.YES else 0
    return 2 if exchange.reason in LOST else 3


def exchange_values(exchange: Exchange, *, account: int, log: int) -> tuple[Any, ...]:
    """Return an exchange as the driver takes it, in the order of EXCHANGE_COLUMNS."""
    facts = [
        str(value) if type(value) is int and value >= SQLITE_INTEGER_LIMIT else value
        for value in _exchange_facts(exchange)
    ]
    return (exchange.id, account, log, rank(exchange), *facts)


def exchange(row: Row) -> Exchange:
    """Return an exchange; `row` also carries `instance_id`."""
    facts = {f.name: row[f.name] for f in fields(Exchange)}
    facts["sent"] = Sent(facts["sent"])
    return Exchange(**facts)
