"""The loop waits for what it is told, and survives what its callbacks do."""

import os

from kt_supervisor.keeper import loop


def test_timers_fire_in_the_order_of_their_times_and_cancelled_ones_never() -> None:
    events = loop.Loop(failed=lambda _: None)
    seen: list[str] = []
    events.after(0.03, events.stop)
    events.after(0.02, lambda: seen.append("late"))
    events.after(0.01, lambda: seen.append("early"))
    events.after(0.005, lambda: seen.append("never")).cancel()

    events.run()

    assert seen == ["early", "late"]


def test_a_callback_that_raises_is_reported_and_the_loop_goes_on() -> None:
    failures: list[str] = []
    events = loop.Loop(failed=lambda error: failures.append(repr(error)))
    readable, writable = os.pipe()
    os.write(writable, b"x")

    def ready(_events: int) -> None:
        events.unwatch(readable)
        raise ValueError("on purpose")

    events.watch(readable, ready)
    events.after(0, lambda: 1 / 0 and None)
    events.after(0.05, events.stop)
    events.run()

    assert sorted(failures) == ["ValueError('on purpose')", "ZeroDivisionError('division by zero')"]
    os.close(readable)
    os.close(writable)


def test_a_descriptor_that_a_neighbour_unwatched_in_the_same_round_is_not_called() -> None:
    events = loop.Loop(failed=lambda _: None)
    pipes = [os.pipe() for _ in range(2)]
    seen: list[int] = []

    def first_of_two(_events: int) -> None:
        seen.append(1)
        for readable, _ in pipes:
            events.unwatch(readable)
        events.stop()

    for readable, writable in pipes:
        os.write(writable, b"x")
        events.watch(readable, first_of_two)
    events.run()

    assert seen == [1]
    for pair in pipes:
        for descriptor in pair:
            os.close(descriptor)
