import uuid

from kt_ledger.clock import ManualClock
from kt_ledger.ids import new_id


def test_an_id_is_a_uuid_of_version_7_that_carries_its_time() -> None:
    clock = ManualClock(wall_ns=1_800_000_000_123_456_789)

    made = uuid.UUID(new_id(wall=clock, randomness=lambda n: b"\xff" * n))

    assert (7, uuid.RFC_4122, 1_800_000_000_123) == (made.version, made.variant, made.int >> 80)


def test_ids_of_later_milliseconds_sort_later() -> None:
    clock = ManualClock()
    first = new_id(wall=clock, randomness=lambda n: b"\xff" * n)
    clock.advance(0.001)

    second = new_id(wall=clock, randomness=bytes)

    assert first < second


def test_ids_of_one_moment_differ() -> None:
    clock = ManualClock()

    assert 1000 == len({new_id(wall=clock) for _ in range(1000)})
