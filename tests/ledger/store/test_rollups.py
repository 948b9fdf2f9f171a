import sqlite3
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from kt_ledger.clock import ManualClock
from kt_ledger.store.rollups import BUCKET_NS
from kt_ledger.store.schema import bucket_totals
from kt_ledger.store.sqlite import SqliteStore
from kt_ledger.values import Completeness, Counts, Folded, Position, Source, UsageEvent


def event(n: int, *, at_ns: int = 0, source: Source = Source.SELF_REPORTED, **facts: object) -> UsageEvent:
    return UsageEvent(
        id=str(n),
        instance_id="i",
        run_id="r",
        source=source,
        key=str(n),
        counts=Counts(input=1, output=2),
        completeness=Completeness.EXACT,
        started_at_ns=at_ns,
        ended_at_ns=at_ns,
        **facts,
    )


def fold(store: SqliteStore, events: list[UsageEvent], at: int = 1) -> None:
    store.fold([Folded(log="run/r/out", position=Position(1, at), events=tuple(events))])


def steps(store: SqliteStore, read: Callable[[], object]) -> int:
    """Return how many instructions SQLite's machine ran: its own measure of work, the same on every computer."""
    with store.engine.connect() as connection:
        driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    ran = 0

    def step() -> int:
        nonlocal ran
        ran += 1
        return 0

    driver.set_progress_handler(step, 1)
    read()
    driver.set_progress_handler(None, 0)
    return ran


def reads(store: SqliteStore) -> dict[str, int]:
    return {
        "totals": steps(store, lambda: store.totals("i")),
        "totals of a run": steps(store, lambda: store.totals("i", run_id="r")),
        "notes": steps(store, lambda: store.notes("i")),
        "in flight": steps(store, lambda: store.in_flight("i")),
        "position": steps(store, lambda: store.position("run/r/out")),
        "recent events": steps(store, lambda: store.recent_events("i", limit=5)),
        "recent exchanges": steps(store, lambda: store.recent_exchanges("i", limit=5)),
    }


def test_a_read_does_the_same_work_at_60_000_events_as_at_200(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    fold(store, [event(n) for n in range(200)])
    small = reads(store)

    for at in range(200, 60_000, 19_980):
        fold(store, [event(n) for n in range(at, at + 19_980)], at=at)

    assert 60_140 == store.totals("i")[Source.SELF_REPORTED].events
    assert small == reads(store)
    assert small["totals"] > 10
    store.close()


def test_committing_a_batch_does_the_same_work_however_many_came_before(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    observed = Source.ENGINE_OBSERVED
    fold(store, [event(n, source=observed) for n in range(100)])
    small = steps(store, lambda: fold(store, [event(n, source=observed) for n in range(100, 200)]))
    fold(store, [event(n, source=observed) for n in range(1000, 12_000)])

    large = steps(store, lambda: fold(store, [event(n, source=observed) for n in range(200, 300)]))

    assert large <= small * 1.1
    store.close()


def test_buckets_are_quarter_hours_of_the_start_by_model_and_source(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    fold(
        store,
        [
            event(1, at_ns=0, model_answered="a", model_asked="b"),
            event(2, at_ns=BUCKET_NS - 1, model_asked="a"),
            event(3, at_ns=BUCKET_NS, model_answered="a"),
            event(4, at_ns=BUCKET_NS),
            event(5, at_ns=BUCKET_NS, model_answered="a", source=Source.ENGINE_OBSERVED),
        ],
    )

    with store.engine.connect() as connection:
        found = connection.execute(sa.select(bucket_totals)).mappings().all()

    assert {
        ("self-reported", "a", 0): 2,
        ("self-reported", "a", 1): 1,
        ("self-reported", "", 1): 1,
        ("engine-observed", "a", 1): 1,
    } == {(row["source"], row["model"], row["bucket"]): row["events"] for row in found}
    store.close()


def test_a_replacement_moves_from_one_bucket_to_another(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    lost = UsageEvent(
        id="x",
        instance_id="i",
        run_id="r",
        source=Source.ENGINE_OBSERVED,
        key="x",
        counts=Counts(),
        completeness=Completeness.UNKNOWN,
        reason="gateway_died",
        model_asked="asked",
        started_at_ns=0,
        ended_at_ns=0,
    )
    real = UsageEvent(
        id="x",
        instance_id="i",
        run_id="r",
        source=Source.ENGINE_OBSERVED,
        key="x",
        counts=Counts(input=2**64 - 1),
        completeness=Completeness.EXACT,
        model_asked="asked",
        model_answered="answered",
        started_at_ns=0,
        ended_at_ns=9,
    )
    fold(store, [lost])

    fold(store, [real])

    with store.engine.connect() as connection:
        found = connection.execute(sa.select(bucket_totals)).mappings().all()
    assert {("asked", 0, None), ("answered", 1, 2**64 - 1)} == {
        (row["model"], row["events"], row["input"]) for row in found
    }
    store.close()
