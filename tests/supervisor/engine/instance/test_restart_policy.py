import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_supervisor.engine.instance.restart_policy import (
    ALWAYS,
    NEVER,
    ON_FAILURE,
    Due,
    End,
    History,
    Instant,
    Policy,
    after_boot,
    decide,
)

S = 1_000_000_000
START = Instant(boot_id="first", monotonic_ns=1000 * S, wall_ns=1_800_000_000 * S)
FAILURE = End(uptime_s=1.2)


def waits_of(policy: Policy, ends: list[End], *, apart_s: float = 0.0) -> list[float | None]:
    """Return how long each of `ends`, one after another, has the agent wait; None where it is not brought back."""
    history, now, waits = History(), START, []
    for end in ends:
        history = decide(policy, history, end, now=now, chance=0.0)
        waits.append(None if history.due is None else history.due.wait_s)
        now = now.later((waits[-1] or 0.0) + apart_s)
    return waits


def test_waits_double_up_to_a_minute() -> None:
    policy = Policy(limit=100, window_s=1e6)

    assert [1, 2, 4, 8, 16, 32, 60, 60] == waits_of(policy, [FAILURE] * 8)


@pytest.mark.parametrize(
    ("word", "success", "comes_back"),
    [
        (NEVER, False, False),
        (NEVER, True, False),
        (ON_FAILURE, False, True),
        (ON_FAILURE, True, False),
        (ALWAYS, False, True),
        (ALWAYS, True, True),
    ],
)
def test_the_policy_says_which_ends_bring_it_back(word: str, success: bool, comes_back: bool) -> None:
    decided = decide(Policy(word=word), History(), End(success=success), now=START, chance=0.0)

    assert comes_back == (decided.due is not None)


def test_the_failure_that_reaches_the_limit_parks_it() -> None:
    assert [1, 2, 4, 8, None] == waits_of(Policy(limit=5, window_s=600), [FAILURE] * 5)


def test_a_crash_loop_says_so() -> None:
    history = History(failures=tuple(START.later(s) for s in range(4)))

    decided = decide(Policy(), history, FAILURE, now=START.later(5), chance=0.0)

    assert "crash loop: 5 failures within 600 s" == decided.parked


def test_failures_outside_of_the_window_are_forgotten() -> None:
    policy = Policy(limit=3, window_s=60)

    assert None not in waits_of(policy, [FAILURE] * 20, apart_s=30)


def test_a_long_life_ends_the_row_of_failures() -> None:
    policy = Policy(reset_after_s=100)

    assert [1, 2, 1, 2] == waits_of(policy, [FAILURE, FAILURE, End(uptime_s=100), FAILURE])


def test_what_would_fail_in_the_same_way_again_is_not_tried() -> None:
    decided = decide(Policy(), History(), End(permanent="no such program"), now=START, chance=0.0)

    assert (None, "no such program") == (decided.due, decided.parked)


def test_an_end_at_the_rate_limit_waits_for_its_reset_and_is_no_failure() -> None:
    until_ns = START.wall_ns + 1234 * S

    decided = decide(
        Policy(), History(), End(limited=True, limited_until_ns=until_ns), now=START, chance=-1.0
    )

    assert decided.due is not None
    assert (1234.0, (), 0) == (decided.due.wait_s, decided.failures, decided.attempt)


@pytest.mark.parametrize(("stated_s", "shortest_s"), [(None, 60.0), (-50, 0.0), (10**9, 24 * 3600.0)])
def test_a_limit_that_says_nothing_useful_is_bounded(stated_s: int | None, shortest_s: float) -> None:
    until_ns = None if stated_s is None else START.wall_ns + stated_s * S

    for chance in (-1.0, 1.0):
        end = End(limited=True, limited_until_ns=until_ns)
        decided = decide(Policy(), History(), end, now=START, chance=chance)
        assert decided.due is not None
        assert shortest_s <= decided.due.wait_s <= shortest_s + 5


@given(st.floats(-1, 1), st.integers(0, 200))
def test_chance_moves_a_wait_by_a_fifth_at_most(chance: float, attempt: int) -> None:
    plain_s = min(2.0**attempt, 60.0)

    decided = decide(Policy(), History(attempt=attempt), FAILURE, now=START, chance=chance)

    assert decided.due is not None
    assert plain_s * 0.8 - 1e-6 <= decided.due.wait_s <= plain_s * 1.2 + 1e-6


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
def test_within_one_boot_a_wall_clock_that_jumps_changes_nothing(jump_s: int) -> None:
    history = decide(Policy(), History(), FAILURE, now=START, chance=0.0)
    jumped = replace(START.later(0.25), wall_ns=START.wall_ns + jump_s * S)

    assert 0.75 == history.remaining_s(jumped)


def test_over_a_reboot_the_wall_clock_counts_and_a_wait_never_grows() -> None:
    history = decide(Policy(), History(attempt=4), FAILURE, now=START, chance=0.0)
    reborn = Instant(boot_id="second", monotonic_ns=S, wall_ns=START.wall_ns + 6 * S)
    set_back = replace(reborn, wall_ns=START.wall_ns - 10**6 * S)

    assert (10.0, 16.0) == (history.remaining_s(reborn), history.remaining_s(set_back))


def test_failures_count_over_a_reboot() -> None:
    history = History(failures=tuple(START.later(s) for s in range(4)))
    reborn = Instant(boot_id="second", monotonic_ns=S, wall_ns=START.wall_ns + 60 * S)

    decided = decide(Policy(), history, FAILURE, now=reborn, chance=0.0)

    assert decided.parked is not None


def test_an_agent_that_comes_back_after_a_reboot_has_no_new_failure() -> None:
    history = after_boot(History(count=3), now=START, chance=0.0)

    assert history.due is not None
    assert (3, 2.5, ()) == (history.count, history.due.wait_s, history.failures)


def test_a_history_survives_being_kept() -> None:
    due = Due(at=START.later(3), wait_s=3.0, why="back-off")
    history = History(count=2, attempt=3, failures=(START,), due=due, parked="because")

    assert history == History.from_json(json.loads(json.dumps(history.to_json())))


@pytest.mark.parametrize(
    "facts",
    [None, {}, {"count": "x"}, {"count": 1}, {"count": 1, "attempt": 1, "failures": 3}, {"failures": [[1]]}],
)
def test_what_makes_no_sense_is_an_empty_history(facts: dict[str, object] | None) -> None:
    assert History() == History.from_json(facts)
