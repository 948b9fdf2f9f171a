import signal

from kt_supervisor.keeper.ladder import KILL_BOUND_S, Ladder, Rung, Signal
from kt_supervisor.keeper.tree import Process

AGENT = Process(10, 1, "S", 100)
CHILD = Process(11, 10, "S", 101)


def test_everything_is_asked_once_and_continued() -> None:
    ladder = Ladder()
    ladder.begin(0.0, timeout_s=30)

    first = ladder.look(0.0, [AGENT])
    second = ladder.look(0.1, [AGENT, CHILD])

    assert [Signal(AGENT, signal.SIGTERM), Signal(AGENT, signal.SIGCONT)] == first
    assert [Signal(CHILD, signal.SIGTERM), Signal(CHILD, signal.SIGCONT)] == second


def test_a_reused_pid_is_asked_again() -> None:
    ladder = Ladder()
    ladder.begin(0.0, timeout_s=30)
    ladder.look(0.0, [AGENT])
    stranger = Process(10, 1, "S", 900)

    assert [Signal(stranger, signal.SIGTERM), Signal(stranger, signal.SIGCONT)] == ladder.look(
        0.1, [stranger]
    )


def test_one_empty_look_is_not_enough() -> None:
    ladder = Ladder()
    ladder.begin(0.0, timeout_s=30)

    ladder.look(0.0, [])
    after_one = ladder.rung
    ladder.look(0.1, [CHILD])
    ladder.look(0.2, [])
    ladder.look(0.3, [])

    assert (Rung.ASKING, Rung.OVER) == (after_one, ladder.rung)
    assert not ladder.forced


def test_when_time_is_up_everything_is_killed_at_each_look() -> None:
    ladder = Ladder()
    ladder.begin(0.0, timeout_s=1)
    ladder.look(0.0, [AGENT])

    assert [Signal(AGENT, signal.SIGSTOP), Signal(AGENT, signal.SIGKILL)] == ladder.look(1.0, [AGENT])
    assert [Signal(CHILD, signal.SIGSTOP), Signal(CHILD, signal.SIGKILL)] == ladder.look(1.1, [CHILD])
    assert ladder.forced


def test_what_does_not_die_is_named() -> None:
    ladder = Ladder()
    ladder.begin(0.0, timeout_s=0)
    ladder.look(0.0, [AGENT, CHILD])

    ladder.look(KILL_BOUND_S, [CHILD])

    assert (Rung.OVER, (CHILD.pid,)) == (ladder.rung, ladder.survivors)


def test_a_second_begin_only_shortens() -> None:
    ladder = Ladder()
    ladder.begin(0.0, timeout_s=10)
    ladder.begin(1.0, timeout_s=600)
    ladder.begin(2.0, timeout_s=1)

    ladder.look(3.0, [AGENT])

    assert Rung.KILLING is ladder.rung
