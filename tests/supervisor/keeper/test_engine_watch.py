import itertools

from kt_supervisor.keeper.engine_watch import LONGEST_S, EngineWatch


def test_an_engine_is_started_after_the_wait_and_then_ever_more_slowly() -> None:
    watch = EngineWatch(now_s=0.0, wait_s=5.0, spread=0.0)
    times = []
    now_s = 0.0
    while len(times) < 12:
        now_s = watch.deadline_s() or 0.0
        assert not watch.is_due(now_s - 0.001)
        assert watch.is_due(now_s)
        times.append(now_s)

    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 5.0 == times[0]
    assert [0.2, 0.4, 0.8] == [round(pause, 3) for pause in pauses[:3]]
    assert LONGEST_S == pauses[-1]


def test_an_engine_that_is_there_is_not_started() -> None:
    watch = EngineWatch(now_s=0.0, wait_s=5.0, spread=0.5)

    watch.engine_came()

    assert watch.deadline_s() is None
    assert not watch.is_due(1e9)


def test_keepers_spread_their_tries() -> None:
    early, late = (EngineWatch(now_s=0.0, wait_s=5.0, spread=spread) for spread in (0.0, 0.9))
    for watch in (early, late):
        watch.engine_came()
        watch.engine_went(10.0)

    assert early.is_due(10.0)
    assert not late.is_due(10.1)
    assert late.is_due(10.2)
