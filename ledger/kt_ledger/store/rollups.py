"""Roll-ups: sums that are kept as events are committed, so that reading a total never reads an event.

Sums are added up in Python, whose integers have no end, and written back whole: one row read and one written for each
roll-up that a batch touches, however many events it has. There is one writer, so nobody else can add in between.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from kt_ledger.records import SourceTotals
from kt_ledger.store.rows import unit_values
from kt_ledger.store.schema import accounts, bucket_totals, instance_totals, run_totals, scopes
from kt_ledger.values import UNITS, Completeness, Counts, Source, UsageEvent

BUCKET_NS = 15 * 60 * 1_000_000_000

_KINDS = {Completeness.EXACT: "exact", Completeness.PARTIAL: "partial", Completeness.ESTIMATED: "estimated"}

Fine = tuple[int, int, str, str, int]
"""Account, scope, source, model, bucket: the finest grain; all roll-ups are sums over it."""


@dataclass(slots=True)
class Sums:
    """What a set of events adds up to; a unit that nobody reported is absent."""

    events: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    unmeasured: dict[str, int] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)

    def add(self, event: UsageEvent, sign: int = 1) -> None:
        """Count one event, or with sign -1 take one back that is replaced."""
        self.events += sign
        kind = _KINDS.get(event.completeness)
        if kind is not None:
            self.kinds[kind] = self.kinds.get(kind, 0) + sign
        measured = False
        for unit, value in zip(UNITS, unit_values(event.counts), strict=True):
            if value is not None:
                measured = True
                self.units[unit] = self.units.get(unit, 0) + sign * value
        if kind is None or not measured:
            reason = event.reason or "unknown"
            self.unmeasured[reason] = self.unmeasured.get(reason, 0) + sign

    def merge(self, other: "Sums") -> None:
        """Add what another set of events adds up to."""
        self.events += other.events
        for mine, others in (
            (self.kinds, other.kinds),
            (self.unmeasured, other.unmeasured),
            (self.units, other.units),
        ):
            for name, value in others.items():
                mine[name] = mine.get(name, 0) + value

    def columns(self) -> dict[str, Any]:
        """Return the columns of a roll-up."""
        unmeasured = {reason: count for reason, count in sorted(self.unmeasured.items()) if count}
        kinds = {kind: self.kinds.get(kind, 0) for kind in _KINDS.values()}
        units = {unit: self.units.get(unit) for unit in UNITS}
        return {"events": self.events, **kinds, "unmeasured": json.dumps(unmeasured), **units}

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> "Sums":
        """Read a roll-up's row."""
        return cls(
            events=row["events"],
            kinds={kind: row[kind] for kind in _KINDS.values()},
            unmeasured=json.loads(row["unmeasured"]),
            units={unit: row[unit] for unit in UNITS if row[unit] is not None},
        )

    def totals(self) -> SourceTotals:
        """Return the sums as the ledger shows them."""
        counts = Counts(**self.units)
        return SourceTotals(
            events=self.events,
            exact=self.kinds.get("exact", 0),
            partial=self.kinds.get("partial", 0),
            estimated=self.kinds.get("estimated", 0),
            unmeasured=dict(self.unmeasured),
            input_tokens=counts.input_total,
            output_tokens=counts.output_total,
            cached_tokens=counts.cache_read,
            reasoning_tokens=counts.reasoning,
        )


class Rollups:
    """What one transaction adds to the sums; written by `write`, before the commit."""

    def __init__(self) -> None:
        self._fine: dict[Fine, Sums] = {}

    def add(self, event: UsageEvent, *, account: int, scope: int, sign: int = 1) -> None:
        """Count one event (or with sign -1 take it back) in every roll-up that it belongs to."""
        model = event.model_answered or event.model_asked or ""
        fine = (account, scope, event.source.value, model, event.started_at_ns // BUCKET_NS)
        sums = self._fine.get(fine)
        if sums is None:
            sums = self._fine[fine] = Sums()
        sums.add(event, sign)

    def by_scope(self) -> dict[int, SourceTotals]:
        """Return what is added to each Run and source."""
        scopes: dict[int, Sums] = {}
        for (_, scope, _, _, _), sums in self._fine.items():
            scopes.setdefault(scope, Sums()).merge(sums)
        return {scope: sums.totals() for scope, sums in scopes.items()}

    def write(self, connection: sa.Connection) -> None:
        """Add everything to the stored sums."""
        runs: dict[tuple[Any, ...], Sums] = {}
        whole: dict[tuple[Any, ...], Sums] = {}
        buckets: dict[tuple[Any, ...], Sums] = {}
        for (account, scope, source, model, bucket), sums in self._fine.items():
            runs.setdefault((scope,), Sums()).merge(sums)
            whole.setdefault((account, source), Sums()).merge(sums)
            buckets.setdefault((account, source, model, bucket), Sums()).merge(sums)
        for table, touched in ((run_totals, runs), (instance_totals, whole), (bucket_totals, buckets)):
            _write(connection, table, touched)


def _write(connection: sa.Connection, table: sa.Table, touched: Mapping[tuple[Any, ...], Sums]) -> None:
    rows = []
    keys = table.primary_key.columns
    for key, added in touched.items():
        stored = connection.execute(sa.select(table).where(*(c == k for c, k in zip(keys, key, strict=True))))
        row = stored.mappings().first()
        sums = Sums() if row is None else Sums.of(row)
        sums.merge(added)
        rows.append({**{c.name: k for c, k in zip(keys, key, strict=True)}, **sums.columns()})
    if rows:
        insert = sqlite.insert(table)
        replaced = {c.name: insert.excluded[c.name] for c in table.columns if not c.primary_key}
        connection.execute(insert.on_conflict_do_update(index_elements=list(keys), set_=replaced), rows)


def by_source(rows: Iterable[Mapping[Any, Any]]) -> dict[Source, SourceTotals]:
    """Return the totals among rows that carry a `source`."""
    return {Source(row["source"]): Sums.of(row).totals() for row in rows}


def read(connection: sa.Connection, instance_id: str, *, run_id: str | None) -> dict[Source, SourceTotals]:
    """Return the sums by source, of an instance's whole life or of one Run."""
    asked = {"instance_id": instance_id, "run_id": run_id}
    query = _OF_INSTANCE if run_id is None else _OF_RUN
    return by_source(connection.execute(query, asked).mappings())


_MINE = (
    sa.select(accounts.c.id).where(accounts.c.instance_id == sa.bindparam("instance_id")).scalar_subquery()
)
_OF_INSTANCE = sa.select(instance_totals).where(instance_totals.c.account == _MINE)
_OF_RUN = (
    sa.select(scopes.c.source, run_totals)
    .join(run_totals, run_totals.c.scope == scopes.c.id)
    .where(scopes.c.account == _MINE, scopes.c.run_id == sa.bindparam("run_id"))
)
