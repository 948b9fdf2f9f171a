"""Records kept for another write: bounded, in order, close records always."""

from kt_gateway.journal import kept
from kt_ledger import journal


def frames(records: kept.KeptRecords) -> list[journal.Record]:
    found = journal.read(b"".join(records.frames_again()))
    return [record for record in found if isinstance(record, journal.Record)]


def test_what_is_durable_is_forgotten_and_the_rest_comes_again_in_order() -> None:
    records = kept.KeptRecords()
    for number in range(5):
        records.add(journal.OPEN, {"x": number}, 10, written=True)

    records.forget(3)

    assert [record.fields for record in frames(records)] == [{"x": 3}, {"x": 4}]
    records.forget(5)
    assert not records


def test_close_records_come_again_marked() -> None:
    records = kept.KeptRecords()
    records.add(journal.OPEN, {"x": 1}, 10, written=True)
    records.add(journal.CLOSE, {"x": 1}, 10, written=False)

    assert [record.fields for record in frames(records)] == [{"x": 1}, {"x": 1, "unsynced": True}]


def test_beyond_the_bound_only_close_records_are_kept_and_the_others_counted() -> None:
    records = kept.KeptRecords()
    records.add(journal.LOCAL, {"x": 0}, kept.KEPT_LIMIT_BYTES, written=False)

    records.add(journal.LOCAL, {"x": 1}, 1, written=False)
    records.add(journal.CLOSE, {"x": 2}, 1, written=False)

    assert [record.fields["x"] for record in frames(records)] == [0, 2]
    note = records.take_dropped()
    assert note is not None
    assert records.take_dropped() is None
    (record,) = journal.read(note)
    assert isinstance(record, journal.Record)
    assert (record.fields["kind"], record.fields["count"]) == ("gap", 1)
