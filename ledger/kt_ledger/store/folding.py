"""The fold: what was read of the logs becomes rows, roll-ups and positions, in one transaction.

Laws: an event is counted once by (instance, Run, source, key); the first one counts; a position moves only together
with what was read before it, and only from where the reader began.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from kt_ledger.records import SourceTotals
from kt_ledger.store import PositionMoved, event_log, rows
from kt_ledger.store.interning import Account, Interning, Scope, number_of
from kt_ledger.store.noting import write_notes
from kt_ledger.store.rollups import Rollups
from kt_ledger.store.schema import events as events_table
from kt_ledger.store.schema import exchanges as exchanges_table
from kt_ledger.store.schema import logs
from kt_ledger.values import Counts, Exchange, Folded, Note, Position, Source, UsageEvent

_KEYS_A_QUERY = (
    400  # below SQLite's oldest limit of 999 variables (https://sqlite.org/limits.html, section 9)
)

_Key = tuple[int, str]  # scope, event key


def fold(connection: sa.Connection, batch: Sequence[Folded], *, at_ns: int) -> list[UsageEvent]:
    """Write a batch inside the caller's transaction; see `Store.fold`."""
    interning = Interning(connection)
    log_ids = [_advance(connection, folded) for folded in batch]
    run = _Fold(connection, interning)
    run.take([event for folded in batch for event in folded.events])
    _write_exchanges(connection, interning, list(zip(log_ids, batch, strict=True)))
    write_notes(connection, interning, [*(n for folded in batch for n in folded.notes), *run.notes])
    interning.write_scopes()
    event_log.usage(connection, run.updates(), at_ns=at_ns)
    return run.new


def _advance(connection: sa.Connection, folded: Folded) -> int:
    """Move a log's position, from where the reader began; return the log's number."""
    row = connection.execute(sa.select(logs).where(logs.c.log == folded.log)).first()
    stored = Position() if row is None else Position(row.segment, row.offset, row.skipping)
    if folded.start is not None and folded.start != stored:
        raise PositionMoved(
            f"log {folded.log}: read from {folded.start} — wanted from {stored}, where it was last folded to; "
            "read again from there"
        )
    place = {
        "segment": folded.position.segment,
        "offset": folded.position.offset,
        "skipping": folded.position.skipping,
    }
    if row is not None:
        if folded.position != stored:
            connection.execute(sa.update(logs).where(logs.c.id == row.id).values(**place))
        return int(row.id)
    inserted = connection.execute(sa.insert(logs).values(log=folded.log, **place))
    return number_of(inserted)


@dataclass(slots=True)
class _Known:
    """An event that is already counted: in the store (`seq`), or earlier in this batch (`event`)."""

    counts: Counts
    reason: str | None
    seq: int | None = None
    event: UsageEvent | None = None


@dataclass(slots=True)
class _Fold:
    """One batch on its way in."""

    connection: sa.Connection
    interning: Interning
    new: list[UsageEvent] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    _rollups: Rollups = field(default_factory=Rollups)
    _fresh: dict[_Key, tuple[UsageEvent, Account, Scope]] = field(default_factory=dict)
    _replaced: list[tuple[UsageEvent, Account, Scope]] = field(default_factory=list)

    def take(self, events: Sequence[UsageEvent]) -> None:
        """Sort the events into new, replacing and already counted; write the first two."""
        placed = [(event, *self.interning.place(event)) for event in events]
        known = self._stored(placed)
        for event, account, scope in placed:
            key = (scope.id, event.key)
            before = known.get(key)
            if before is None:
                known[key] = _Known(event.counts, event.reason, event=event)
                self._count(key, event, account, scope)
            elif before.reason in rows.LOST and event.reason not in rows.LOST:
                self._replace(before, event, account, scope)
                known[key] = _Known(event.counts, event.reason, seq=before.seq, event=event)
            else:
                self._again(before, event)
        self._write()

    def updates(self) -> list[tuple[UsageEvent, SourceTotals]]:
        """Return, for each Run and source, the latest event and what all of them add up to."""
        latest = {scope.id: event for event, _, scope in (*self._fresh.values(), *self._replaced)}
        added = self._rollups.by_scope()
        return [(event, added[scope]) for scope, event in latest.items()]

    def _stored(self, placed: Sequence[tuple[UsageEvent, Account, Scope]]) -> dict[_Key, _Known]:
        """Return what the store already holds of these events."""
        wanted: dict[int, list[str]] = {}
        for event, _, scope in placed:
            if scope.may_hold(event):
                wanted.setdefault(scope.id, []).append(event.key)
        known = {}
        for scope_id, keys in wanted.items():
            for at in range(0, len(keys), _KEYS_A_QUERY):
                some = keys[at : at + _KEYS_A_QUERY]
                query = sa.select(events_table).where(
                    events_table.c.scope == scope_id, events_table.c.key.in_(some)
                )
                for row in self.connection.execute(query).mappings():
                    known[scope_id, row["key"]] = _Known(rows.counts(row), row["reason"], seq=row["seq"])
        return known

    def _count(self, key: _Key, event: UsageEvent, account: Account, scope: Scope) -> None:
        if event.source is Source.SELF_REPORTED and scope.saw(event):
            self._note(event, "late", f"sequence {event.key} arrived after a higher one; it was counted")
        self._fresh[key] = (event, account, scope)
        self._rollups.add(event, account=account.id, scope=scope.id)
        self.new.append(event)

    def _replace(self, before: _Known, event: UsageEvent, account: Account, scope: Scope) -> None:
        """Put a real close in the place of the loss that we had assumed."""
        if before.event is not None:
            lost = before.event
            self.new.remove(lost)
        else:
            assert before.seq is not None
            lost = self._load(before.seq, event)
        self._rollups.add(lost, account=account.id, scope=scope.id, sign=-1)
        self._rollups.add(event, account=account.id, scope=scope.id)
        self.new.append(event)
        if before.seq is not None:
            self._replaced.append((event, account, scope))
        else:
            self._fresh[scope.id, event.key] = (event, account, scope)

    def _load(self, seq: int, like: UsageEvent) -> UsageEvent:
        row = (
            self.connection.execute(sa.select(events_table).where(events_table.c.seq == seq)).mappings().one()
        )
        owner = {"instance_id": like.instance_id, "run_id": like.run_id, "source": like.source}
        return rows.event({**row, **owner})

    def _again(self, before: _Known, event: UsageEvent) -> None:
        """Note an event that is already counted; the gateway's own repetitions are as meant, and silent."""
        what = f"sequence {event.key}" if event.source is Source.SELF_REPORTED else "an exchange"
        if before.counts != event.counts and event.reason not in rows.LOST:
            self._note(event, "conflict", f"{what} came again with other counts; the first ones stand")
        elif event.source is Source.SELF_REPORTED:
            self._note(event, "replay", f"{what} came again with the same counts; it was counted once")

    def _note(self, event: UsageEvent, kind: str, detail: str) -> None:
        self.notes.append(
            Note(
                kind=kind,
                instance_id=event.instance_id,
                run_id=event.run_id,
                at_ns=event.ended_at_ns,
                detail=detail,
            )
        )

    def _write(self) -> None:
        if self._fresh:
            values = [
                rows.event_values(event, account=account.id, scope=scope.id)
                for event, account, scope in self._fresh.values()
            ]
            self.connection.exec_driver_sql(_INSERT_EVENT, values)
        if self._replaced:
            values = [
                rows.event_values(event, account=account.id, scope=scope.id)
                for event, account, scope in self._replaced
            ]
            self.connection.exec_driver_sql(_REPLACE_EVENT, values)
        self._rollups.write(self.connection)


def _write_exchanges(
    connection: sa.Connection, interning: Interning, batch: Sequence[tuple[int, Folded]]
) -> None:
    latest: dict[str, tuple[int, Exchange]] = {}
    for log, folded in batch:
        for exchange in folded.exchanges:
            before = latest.get(exchange.id)
            if before is None or rows.rank(exchange) > rows.rank(before[1]):
                latest[exchange.id] = (log, _joined(before[1], exchange) if before else exchange)
    if latest:
        values = [
            rows.exchange_values(exchange, account=interning.account(exchange.instance_id).id, log=log)
            for log, exchange in latest.values()
        ]
        connection.exec_driver_sql(_CLIMB, values)


def _joined(before: Exchange, after: Exchange) -> Exchange:
    """Return `after`, with what only `before` knew."""
    kept = {name: getattr(before, name) for name in _KEPT if getattr(after, name) is None}
    return replace(after, **kept) if kept else after


_KEPT = ("stream", "model_asked", "max_tokens", "choices", "request_bytes", "response_bytes", "retry_count")
"""What an earlier record may know and a later one, standing alone, may not."""


def _driver_sql(statement: Any, columns: Sequence[str]) -> str:
    """Return the statement's text for tuples in the order of `columns`: the hot path skips per-row processing."""
    compiled = statement.compile(dialect=sqlite.dialect(paramstyle="qmark"), column_keys=list(columns))
    assert list(compiled.positiontup) == list(columns), compiled.positiontup
    return str(compiled)


def _climb() -> Any:
    insert = sqlite.insert(exchanges_table)
    fresh, old = insert.excluded, exchanges_table.c
    changed = {
        name: sa.func.coalesce(fresh[name], old[name]) if name in _KEPT else fresh[name]
        for name in rows.EXCHANGE_COLUMNS
        if name not in ("id", "account", "log")
    }
    return insert.on_conflict_do_update(
        index_elements=[old.id], set_=changed, where=fresh["rank"] > old["rank"]
    )


def _replace_event() -> Any:
    insert = sqlite.insert(events_table)
    changed = {
        name: insert.excluded[name] for name in rows.EVENT_COLUMNS if name not in ("account", "scope", "key")
    }
    return insert.on_conflict_do_update(
        index_elements=[events_table.c.scope, events_table.c.key], set_=changed
    )


_INSERT_EVENT = _driver_sql(sa.insert(events_table), rows.EVENT_COLUMNS)
_REPLACE_EVENT = _driver_sql(_replace_event(), rows.EVENT_COLUMNS)
_CLIMB = _driver_sql(_climb(), rows.EXCHANGE_COLUMNS)
