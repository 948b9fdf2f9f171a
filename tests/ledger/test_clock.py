from kt_ledger.clock import ManualClock, SystemClock


def test_a_manual_clock_moves_when_told_and_only_then() -> None:
    clock = ManualClock(wall_ns=1000)

    clock.advance(1.5)

    assert (1_500_001_000, 1_500_000_000) == (clock.wall_ns(), clock.monotonic_ns())


def test_the_systems_monotonic_clock_never_goes_back_and_its_wall_is_past_2020() -> None:
    clock = SystemClock()

    assert clock.monotonic_ns() <= clock.monotonic_ns()
    assert clock.wall_ns() > 1_577_836_800_000_000_000
