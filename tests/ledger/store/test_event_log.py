from pathlib import Path

import pytest

from kt_ledger.clock import ManualClock
from kt_ledger.store import event_log
from kt_ledger.store.event_log import Retention
from kt_ledger.store.sqlite import SqliteStore

FEW = Retention(lasting=5, usage=10, every=10)


def filled(path: Path, kinds: list[str]) -> SqliteStore:
    store = SqliteStore(path, clock=ManualClock())
    for kind in kinds:
        seq = store.add_event(kind, None, {}, 1)
        if seq % FEW.every == 0:
            with store.engine.connect() as connection, connection.begin():
                event_log.prune(connection, seq, FEW)
    return store


def test_updates_of_usage_go_first_and_what_only_events_say_stays(tmp_path: Path) -> None:
    kinds = ["transition"] + ["usage_update"] * 49
    store = filled(tmp_path / "ledger.db", kinds)

    kept = store.events()

    assert [1, *range(41, 51)] == [row.seq for row in kept]
    store.close()


def test_of_lasting_events_the_latest_stay(tmp_path: Path) -> None:
    store = filled(tmp_path / "ledger.db", ["transition"] * 30)

    assert list(range(26, 31)) == [row.seq for row in store.events()]
    store.close()


@pytest.mark.parametrize("emptied", [False, True])
def test_a_number_is_never_given_twice_whatever_was_deleted(tmp_path: Path, emptied: bool) -> None:
    store = filled(tmp_path / "ledger.db", ["transition"] * 20)
    with store.engine.connect() as connection, connection.begin():
        everything = Retention(lasting=0, usage=0) if emptied else FEW
        event_log.prune(connection, 20, everything)
    store.close()

    again = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())

    assert 21 == again.add_event("transition", None, {}, 1)
    again.close()


def test_retention_happens_by_itself_while_events_are_added(tmp_path: Path) -> None:
    """The real numbers, in one transaction."""
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    limit = event_log.RETENTION.usage + 2 * event_log.RETENTION.every
    with store.engine.connect() as connection, connection.begin():
        for _ in range(limit):
            event_log.append(connection, "usage_update", None, {}, at_ns=1)

    assert 2 * event_log.RETENTION.every + 1 == store.events(limit=1)[0].seq
    store.close()
