"""What the store's contract cannot see: that these reads use an index, however many rows there are."""

from pathlib import Path

import pytest

from kt_ledger.clock import ManualClock
from kt_ledger.store import calls, event_log, registrations
from kt_ledger.store.sqlite import SqliteStore


@pytest.mark.parametrize(
    ("read", "index"),
    [
        (lambda c: calls.last_limited(c, "r1"), "exchanges_limited"),
        (lambda c: calls.in_flight(c, "i1", run_id=None), "exchanges_in_flight"),
        (lambda c: calls.open_ones(c, "journal/g1"), "exchanges_in_flight"),
        (lambda c: registrations.unended_runs(c), "runs_unended"),
        (lambda c: calls.recent(c, "i1", limit=5), "sqlite_autoindex_events"),
        (lambda c: event_log.read(c, after=3, limit=5, instance_id="i1"), "engine_events_instance"),
    ],
)
def test_a_read_finds_its_rows_by_an_index(tmp_path: Path, read: object, index: str) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    asked: list[str] = []

    with store.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.set_trace_callback(asked.append)
        assert callable(read)
        read(connection)
        driver.set_trace_callback(None)
        [query] = [sql for sql in asked if sql.startswith("SELECT")]
        plan = [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {query}")]

    assert index in " ".join(plan)
    tables = ("SCAN exchanges", "SCAN events", "SCAN engine_events", "SCAN runs")
    assert not [step for step in plan if step.startswith(tables) and "USING" not in step]
    store.close()
