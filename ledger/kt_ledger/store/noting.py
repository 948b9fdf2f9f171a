"""Findings: counted by kind, the latest sentence kept; an agent that prints a million bad lines fills one row."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from kt_ledger.records import NoteCounts
from kt_ledger.store.interning import Interning
from kt_ledger.store.schema import accounts, note_totals, run_totals, scopes
from kt_ledger.values import Note, Source


def write_notes(connection: sa.Connection, interning: Interning, notes: Sequence[Note]) -> None:
    """Add findings to their counters, inside the caller's transaction."""
    merged: dict[tuple[int, str, str], tuple[int, Note]] = {}
    for note in notes:
        key = (interning.account(note.instance_id).id, note.run_id or "", note.kind)
        before = merged.get(key)
        merged[key] = (note.count + (before[0] if before else 0), note)
    for (account, run_id, kind), (count, note) in merged.items():
        where = (
            note_totals.c.account == account,
            note_totals.c.run_id == run_id,
            note_totals.c.kind == kind,
        )
        stored = connection.execute(sa.select(note_totals.c.count).where(*where)).scalar()
        insert = sqlite.insert(note_totals).values(
            account=account,
            run_id=run_id,
            kind=kind,
            count=count + (stored or 0),
            latest=note.detail,
            latest_at_ns=note.at_ns,
        )
        replaced = {name: insert.excluded[name] for name in ("count", "latest", "latest_at_ns")}
        connection.execute(
            insert.on_conflict_do_update(index_elements=list(note_totals.primary_key.columns), set_=replaced)
        )


def read_notes(connection: sa.Connection, instance_id: str, *, run_id: str | None) -> NoteCounts:
    """Return the findings about an instance, or about one Run of it; missing sequences are a `gap`."""
    counts: dict[str, int] = {}
    latest: dict[str, str] = {}
    query = sa.select(note_totals).join(accounts, accounts.c.id == note_totals.c.account)
    query = query.where(accounts.c.instance_id == instance_id)
    if run_id is not None:
        query = query.where(note_totals.c.run_id == run_id)
    for row in connection.execute(query.order_by(note_totals.c.latest_at_ns)).mappings():
        counts[row["kind"]] = counts.get(row["kind"], 0) + row["count"]
        latest[row["kind"]] = row["latest"]
    missing, sentence = _missing(connection, instance_id, run_id=run_id)
    if missing:
        counts["gap"] = counts.get("gap", 0) + missing
        latest["gap"] = sentence
    return NoteCounts(counts=counts, latest=latest)


def uncounted(connection: sa.Connection, instance_id: str, *, run_id: str | None) -> bool:
    """Return whether an instance, or one Run, said something that was not counted; cheap, unlike `read_notes`."""
    asked = {"instance_id": instance_id, "run_id": run_id}
    return bool(connection.execute(_UNCOUNTED[run_id is not None], asked).scalar())


def _uncounted(*, of_run: bool) -> sa.Select[tuple[bool]]:
    account = sa.select(accounts.c.id).where(accounts.c.instance_id == sa.bindparam("instance_id"))
    mine = account.scalar_subquery()
    said = sa.select(note_totals.c.kind).where(
        note_totals.c.account == mine, note_totals.c.kind.in_(["malformed", "gap"])
    )
    known = scopes.c.highest + sa.case((scopes.c.zero_seen, 1), else_=0)
    missing = sa.select(scopes.c.id).join(run_totals, run_totals.c.scope == scopes.c.id)
    missing = missing.where(scopes.c.account == mine, scopes.c.source == Source.SELF_REPORTED.value)
    # A highest beyond SQLite's integers is text, and a float in this sum: no number of events comes near it.
    missing = missing.where(scopes.c.highest.is_not(None), known != run_totals.c.events)
    if of_run:
        said = said.where(note_totals.c.run_id == sa.bindparam("run_id"))
        missing = missing.where(scopes.c.run_id == sa.bindparam("run_id"))
    return sa.select(sa.or_(said.exists(), missing.exists()))


_UNCOUNTED = {of_run: _uncounted(of_run=of_run) for of_run in (False, True)}
"""Built once: making a statement costs more than running it. What was said and not counted: `malformed`, `gap`."""


def _missing(connection: sa.Connection, instance_id: str, *, run_id: str | None) -> tuple[int, str]:
    """Return how many sequence numbers below the highest of their Run have not been seen, and a sentence.

    Numbers begin at 0 or at 1: where 0 never came, it is not missed.
    """
    query = (
        sa.select(scopes.c.highest, scopes.c.zero_seen, run_totals.c.events)
        .join(accounts, accounts.c.id == scopes.c.account)
        .join(run_totals, run_totals.c.scope == scopes.c.id)
        .where(accounts.c.instance_id == instance_id, scopes.c.source == Source.SELF_REPORTED.value)
        .where(scopes.c.highest.is_not(None))
    )
    if run_id is not None:
        query = query.where(scopes.c.run_id == run_id)
    total, sentence = 0, ""
    for row in connection.execute(query.order_by(scopes.c.id)):
        missing = row.highest + (1 if row.zero_seen else 0) - row.events
        if missing:
            total += missing
            sentence = f"{missing} sequence numbers below {row.highest} have not been seen"
    return total, sentence
