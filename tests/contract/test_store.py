"""What every store must do, whatever it keeps its rows in."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kt_ledger.clock import ManualClock
from kt_ledger.records import InstanceRow, RunRow, SourceTotals, State, TransitionRow
from kt_ledger.store import NameTaken, PositionMoved, Store
from kt_ledger.store.sqlite import open_store
from kt_ledger.values import (
    U64_MAX,
    Completeness,
    Counts,
    Exchange,
    Folded,
    Note,
    Position,
    Sent,
    Source,
    UsageEvent,
)

START_NS = 1_800_000_000_000_000_000
KILLS = 20 if "KT_CHAOS" in os.environ else 5


@pytest.fixture
def store(reopen: Callable[[], Store]) -> Iterator[Store]:
    opened = reopen()
    yield opened
    opened.close()


def instance(name: str = "agent", id_: str = "i1", **facts: object) -> InstanceRow:
    return InstanceRow(id=id_, name=name, kind="command", adapter="{}", created_at_ns=START_NS, **facts)


def event(
    key: str,
    counts: Counts | None = None,
    *,
    source: Source = Source.SELF_REPORTED,
    reason: str | None = None,
    **facts: object,
) -> UsageEvent:
    defaults: dict[str, object] = {
        "id": f"event-{key}",
        "instance_id": "i1",
        "run_id": "r1",
        "completeness": Completeness.UNKNOWN if reason else Completeness.EXACT,
        "started_at_ns": START_NS,
        "ended_at_ns": START_NS + 1,
    }
    counted = (Counts() if reason else Counts(input=10, output=5)) if counts is None else counts
    return UsageEvent(key=key, counts=counted, source=source, reason=reason, **{**defaults, **facts})


def observed(key: str, counts: Counts | None = None, **facts: object) -> UsageEvent:
    return event(key, counts, source=Source.ENGINE_OBSERVED, **facts)


def exchange(id_: str, **facts: object) -> Exchange:
    defaults: dict[str, object] = {
        "instance_id": "i1",
        "run_id": "r1",
        "sent": Sent.MAYBE,
        "state": "in_flight",
        "method": "POST",
        "path": "/v1/chat/completions",
        "family": "chat.completions",
        "started_at_ns": START_NS,
    }
    return Exchange(id=id_, **{**defaults, **facts})


def folded(*events: UsageEvent, log: str = "run/r1/out", at: int = 1, **facts: object) -> Folded:
    return Folded(log=log, position=Position(1, at), events=events, **facts)


def sentinel_totals(store: Store, run_id: str | None = None) -> SourceTotals:
    return store.totals("i1", run_id=run_id)[Source.SELF_REPORTED]


# -- instances and Runs ------------------------------------------------------------------------------------------
def test_an_instance_is_remembered_as_it_was_given(reopen: Callable[[], Store]) -> None:
    row = instance(port=18000, cause={"kind": "launch-error", "detail": "—"}, run_id="r0", desired="running")
    store = reopen()
    store.add_instance(row)
    store.close()

    again = reopen()

    assert row == again.instance("agent")
    assert [row] == again.instances()
    again.close()


def test_a_name_is_taken_until_its_instance_is_removed(store: Store) -> None:
    store.add_instance(instance())

    with pytest.raises(NameTaken, match="agent agent"):
        store.add_instance(instance(id_="i2"))
    store.remove_instance("i1", at_ns=START_NS)
    store.add_instance(instance(id_="i2"))

    assert ["i2"] == [row.id for row in store.instances()]


def test_usage_stays_under_the_id_of_a_removed_instance_and_a_reused_name_starts_at_none(
    store: Store,
) -> None:
    store.add_instance(instance())
    store.fold([folded(event("0"))])

    store.remove_instance("i1", at_ns=START_NS)
    store.add_instance(instance(id_="i2"))

    assert 1 == sentinel_totals(store).events
    assert {} == store.totals("i2")


def test_a_move_changes_state_history_and_run_at_once(store: Store) -> None:
    store.add_instance(instance())
    run = RunRow(id="r1", instance_id="i1", token="t", started_at_ns=START_NS)
    starting = TransitionRow(
        instance_id="i1",
        prior_state=State.REGISTERED,
        new_state=State.STARTING,
        cause={"kind": "operator-action"},
        at_ns=START_NS,
    )

    store.move(starting, desired="running", run=run)

    row = store.instance("agent")
    assert row is not None
    assert (State.STARTING, "running", "r1") == (row.state, row.desired, row.run_id)
    assert [starting] == store.transitions("i1")
    assert [run] == store.unended_runs()


def test_a_move_that_fails_changes_nothing(store: Store) -> None:
    store.add_instance(instance())
    stray = RunRow(id="r1", instance_id="nobody", token="t", started_at_ns=START_NS)
    starting = TransitionRow(
        instance_id="i1", prior_state=State.REGISTERED, new_state=State.STARTING, cause={}, at_ns=START_NS
    )

    with pytest.raises(Exception, match="FOREIGN KEY"):
        store.move(starting, run=stray)

    assert instance() == store.instance("agent")
    assert [] == store.transitions("i1")


def test_a_run_is_replaced_by_its_id(store: Store) -> None:
    store.add_instance(instance())
    run = RunRow(id="r1", instance_id="i1", token="t", started_at_ns=START_NS, agent_pid=7, boot_id="b")
    ended = RunRow(id="r1", instance_id="i1", token="t", state="ended", started_at_ns=START_NS, exit_code=3)
    store.save_run(run)

    store.save_run(ended)

    assert ended == store.run("r1")
    assert [] == store.unended_runs()
    assert store.run("r2") is None


def test_a_port_is_remembered(store: Store) -> None:
    store.add_instance(instance())

    store.set_port("i1", 18001)

    assert instance(port=18001) == store.instance("agent")


# -- counting ----------------------------------------------------------------------------------------------------
def test_an_event_comes_back_as_it_was_given(store: Store) -> None:
    counts = Counts(*range(1, 14))
    given = observed(
        "x1",
        counts,
        completeness=Completeness.PARTIAL,
        reason="upstream_cut",
        model_asked="m",
        model_answered="m-1",
        provider="p",
        service_tier="flex",
        request_id="req",
        raw_usage='{"a":1}',
    )

    store.fold([folded(given)])

    assert [given] == store.recent_events("i1", limit=9)


def test_the_same_event_is_counted_once_and_noted(store: Store) -> None:
    first = store.fold([folded(event("0"))])
    again = store.fold([folded(event("0", id="other"), at=2)])

    assert (1, 0) == (len(first), len(again))
    assert 1 == sentinel_totals(store).events
    assert {"replay": 1} == store.notes("i1").counts


def test_the_same_event_twice_in_one_batch_is_counted_once(store: Store) -> None:
    new = store.fold([folded(event("0"), event("0")), folded(event("0"), at=2)])

    assert 1 == len(new)
    assert {"replay": 2} == store.notes("i1", run_id="r1").counts


@pytest.mark.parametrize("same_batch", [True, False])
def test_a_sequence_with_other_counts_is_a_conflict_and_the_first_one_counts(
    store: Store, same_batch: bool
) -> None:
    other = event("7", Counts(input=99))

    if same_batch:
        store.fold([folded(event("7"), other)])
    else:
        store.fold([folded(event("7"))])
        store.fold([folded(other, at=2)])

    assert 10 == sentinel_totals(store).input_tokens
    assert 1 == store.notes("i1").counts["conflict"]


def test_the_same_sequence_in_another_run_or_instance_is_another_event(store: Store) -> None:
    new = store.fold(
        [folded(event("0"), event("0", run_id="r2"), event("0", instance_id="i2"), event("0", run_id=None))]
    )

    assert 4 == len(new)
    assert 3 == sentinel_totals(store).events
    assert 1 == sentinel_totals(store, "r1").events


def test_both_witnesses_of_a_run_are_counted_apart(store: Store) -> None:
    store.fold([folded(event("1"), observed("1", Counts(input=11)))])

    totals = store.totals("i1")

    assert (10, 11) == (
        totals[Source.SELF_REPORTED].input_tokens,
        totals[Source.ENGINE_OBSERVED].input_tokens,
    )


def test_missing_sequences_are_a_gap_that_heals_when_they_arrive_late(store: Store) -> None:
    store.fold([folded(event("0"), event("1"), event("5"))])
    before = store.notes("i1").counts
    store.fold([folded(event("3"), event("2"), event("4"), at=2)])

    after = store.notes("i1").counts

    assert {"gap": 3} == before
    assert {"late": 3} == after
    assert 6 == sentinel_totals(store).events


@pytest.mark.parametrize(("first", "gap"), [("0", {}), ("1", {}), ("3", {"gap": 2})])
def test_sequences_begin_at_zero_or_one(store: Store, first: str, gap: dict[str, int]) -> None:
    store.fold([folded(event(first))])

    assert gap == store.notes("i1").counts


def test_zero_arriving_after_one_is_late_and_leaves_no_gap(store: Store) -> None:
    store.fold([folded(event("1"), event("0"), event("2"))])

    assert {"late": 1} == store.notes("i1").counts


def test_late_and_replayed_lines_are_told_apart_after_a_restart(reopen: Callable[[], Store]) -> None:
    store = reopen()
    store.fold([folded(event("1"), event("4"))])
    store.close()
    store = reopen()

    store.fold([folded(event("1"), event("2"), event("5"), at=2)])

    assert {"replay": 1, "late": 1, "gap": 1} == store.notes("i1").counts
    store.close()


def test_sums_of_the_largest_counts_are_exact(store: Store) -> None:
    largest = Counts(input=U64_MAX, output=U64_MAX)
    store.fold([folded(*(event(str(n), largest) for n in range(1, 4)))])
    store.fold([folded(event("4", largest), event(str(U64_MAX), Counts(input=1)), at=2)])

    totals = sentinel_totals(store)

    assert (4 * U64_MAX + 1, 4 * U64_MAX) == (totals.input_tokens, totals.output_tokens)
    assert U64_MAX - 5 == store.notes("i1").counts["gap"]
    assert largest == store.recent_events("i1", limit=2)[0].counts


@pytest.mark.parametrize("count", [0, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, U64_MAX])
def test_a_count_is_kept_exactly(store: Store, count: int) -> None:
    store.fold([folded(event("1", Counts(input=count)))])

    assert count == store.recent_events("i1", limit=1)[0].counts.input
    assert count == sentinel_totals(store).input_tokens


def test_an_unreported_unit_is_none_and_a_reported_zero_is_zero(store: Store) -> None:
    store.fold([folded(event("1", Counts(input=0)))])

    totals = sentinel_totals(store)

    assert (0, None, None) == (totals.input_tokens, totals.output_tokens, totals.cached_tokens)
    assert "all" == totals.usage_known


def test_totals_of_disjoint_units_include_what_the_contract_includes(store: Store) -> None:
    store.fold([folded(event("1", Counts(input=70, cache_read=30, output=8, reasoning=2)))])

    totals = sentinel_totals(store)

    assert (100, 10, 30, 2) == (
        totals.input_tokens,
        totals.output_tokens,
        totals.cached_tokens,
        totals.reasoning_tokens,
    )


def test_events_are_counted_by_completeness_and_unknown_ones_by_reason(store: Store) -> None:
    store.fold(
        [
            folded(
                observed("a"),
                observed("b", Counts(output=3), completeness=Completeness.PARTIAL, reason="upstream_cut"),
                observed("c", Counts(input=4), completeness=Completeness.ESTIMATED, reason="no_usage"),
                observed("d", reason="no_usage"),
                observed("e", reason="no_usage"),
                observed("f", reason="provider_error"),
            )
        ]
    )

    totals = store.totals("i1", run_id="r1")[Source.ENGINE_OBSERVED]

    assert (6, 1, 1, 1) == (totals.events, totals.exact, totals.partial, totals.estimated)
    assert {"no_usage": 2, "provider_error": 1} == totals.unmeasured
    assert ("partial", 3) == (totals.usage_known, totals.unmeasured_calls)


def test_a_real_close_replaces_the_loss_that_was_assumed(store: Store) -> None:
    store.fold([folded(observed("x", reason="gateway_died"), observed("y"))])

    new = store.fold([folded(observed("x", Counts(input=100)), at=2)])

    totals = store.totals("i1")[Source.ENGINE_OBSERVED]
    assert ["x"] == [one.key for one in new]
    assert (2, 2, {}, 110) == (totals.events, totals.exact, totals.unmeasured, totals.input_tokens)
    assert {"x": 100, "y": 10} == {one.key: one.counts.input for one in store.recent_events("i1", limit=9)}
    assert {} == store.notes("i1").counts


def test_a_real_close_replaces_the_loss_within_one_batch_and_is_not_replaced_by_one(store: Store) -> None:
    real, lost = observed("x", Counts(input=1)), observed("x", reason="may_not_have_been_sent")

    new = store.fold([folded(lost, real, lost)])

    totals = store.totals("i1")[Source.ENGINE_OBSERVED]
    assert [real] == new
    assert (1, 1, {}) == (totals.events, totals.exact, totals.unmeasured)
    assert {} == store.notes("i1").counts


def test_a_loss_is_replaced_by_the_largest_count(store: Store) -> None:
    store.fold([folded(observed("x", reason="gateway_died"))])

    store.fold([folded(observed("x", Counts(input=U64_MAX)), at=2)])

    assert U64_MAX == store.recent_events("i1", limit=1)[0].counts.input


def test_a_loss_replaced_by_another_unknown_moves_to_its_reason(store: Store) -> None:
    store.fold([folded(observed("x", reason="gateway_died"))])

    store.fold([folded(observed("x", reason="no_usage"), at=2)])

    assert {"no_usage": 1} == store.totals("i1")[Source.ENGINE_OBSERVED].unmeasured


# -- exchanges ---------------------------------------------------------------------------------------------------
def test_an_exchange_is_in_flight_until_it_ends(store: Store) -> None:
    log = "journal/g1"
    open_ = exchange("x", model_asked="m", max_tokens=U64_MAX, choices=2, retry_count=1)
    store.fold([folded(log=log, exchanges=(open_, exchange("y", run_id="r2")))])
    before = (store.in_flight("i1"), store.in_flight("i1", run_id="r1"), store.open_exchanges(log))
    ended = exchange(
        "x", state="ended", sent=Sent.YES, status=200, ended_at_ns=START_NS + 5, response_bytes=9
    )

    store.fold([folded(log=log, at=2, exchanges=(ended,))])

    assert (2, 1, [open_, exchange("y", run_id="r2")]) == before
    assert [exchange("y", run_id="r2")] == store.open_exchanges(log)
    assert [] == store.open_exchanges("journal/g2")
    row = store.recent_exchanges("i1", limit=9)[0]
    assert ("ended", 200, "m", U64_MAX, 2, 1) == (
        row.state,
        row.status,
        row.model_asked,
        row.max_tokens,
        row.choices,
        row.retry_count,
    )


LADDER = [
    exchange("x"),
    exchange("x", sent=Sent.YES),
    exchange("x", sent=Sent.YES, state="ended", reason="gateway_died", ended_at_ns=START_NS),
    exchange("x", sent=Sent.YES, state="ended", status=200, ended_at_ns=START_NS + 1),
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
@pytest.mark.parametrize("same_batch", [True, False])
def test_an_exchange_never_goes_back(store: Store, order: tuple[int, ...], same_batch: bool) -> None:
    steps = [LADDER[at] for at in order]

    if same_batch:
        store.fold([folded(log="journal/g1", exchanges=tuple(steps))])
    else:
        for at, step in enumerate(steps):
            store.fold([folded(log="journal/g1", at=at, exchanges=(step,))])

    assert [LADDER[3]] == store.recent_exchanges("i1", limit=9)


def test_the_latest_rows_are_the_latest_oldest_first(store: Store) -> None:
    store.fold(
        [folded(*(event(str(n)) for n in range(9)), exchanges=tuple(exchange(f"x{n}") for n in range(9)))]
    )

    assert ["7", "8"] == [one.key for one in store.recent_events("i1", limit=2)]
    assert ["x7", "x8"] == [one.id for one in store.recent_exchanges("i1", limit=2)]
    assert [] == store.recent_events("i9", limit=2)


# -- positions and notes -----------------------------------------------------------------------------------------
def test_a_log_that_was_never_folded_begins_at_the_start(store: Store) -> None:
    assert Position(1, 0) == store.position("run/r9/out")
    assert 0 == store.in_flight("i9")
    assert {} == store.notes("i9").counts


def test_a_position_is_kept_with_what_was_read_before_it(reopen: Callable[[], Store]) -> None:
    store = reopen()
    store.fold([Folded(log="run/r1/out", position=Position(3, 17, skipping=True), events=(event("0"),))])
    store.close()

    store = reopen()

    assert Position(3, 17, skipping=True) == store.position("run/r1/out")
    assert 1 == sentinel_totals(store).events
    store.close()


def test_a_read_from_elsewhere_is_refused_as_a_whole(store: Store) -> None:
    store.fold([folded(event("0"), at=10)])
    good = folded(event("1"), log="run/r2/out", at=5, start=Position(1, 0))
    stale = folded(event("2"), at=20, start=Position(1, 0))

    with pytest.raises(PositionMoved, match="run/r1/out"):
        store.fold([good, stale])

    assert Position(1, 10) == store.position("run/r1/out")
    assert Position(1, 0) == store.position("run/r2/out")
    assert 1 == sentinel_totals(store).events


def test_reads_that_follow_each_other_may_share_a_batch(store: Store) -> None:
    store.fold(
        [
            folded(event("0"), at=10, start=Position(1, 0)),
            folded(event("1"), at=20, start=Position(1, 10)),
        ]
    )

    assert Position(1, 20) == store.position("run/r1/out")


def test_notes_add_up_by_kind_and_the_latest_sentence_stays(store: Store) -> None:
    def note(detail: str, at_ns: int, run_id: str | None = "r1", count: int = 1) -> Note:
        return Note(
            kind="malformed", instance_id="i1", run_id=run_id, at_ns=at_ns, detail=detail, count=count
        )

    store.fold([folded(notes=(note("a", 1), note("b", 2, count=3)))])
    store.fold([folded(at=2, notes=(note("c", 3, run_id=None),))])

    assert ({"malformed": 5}, {"malformed": "c"}) == (store.notes("i1").counts, store.notes("i1").latest)
    assert {"malformed": 4} == store.notes("i1", run_id="r1").counts


def test_a_batch_of_nothing_is_nothing(store: Store) -> None:
    assert [] == store.fold([])


def test_a_random_history_adds_up_however_it_is_batched(reopen: Callable[[], Store]) -> None:
    """The model is a dictionary; replays, losses and their repair come in any order."""
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    rng = random.Random(seed)
    model: dict[str, int | None] = {}
    store = reopen()

    for at in range(60):
        batch = []
        for _ in range(rng.randrange(12)):
            key = f"x{rng.randrange(150)}"
            count = rng.choice([None, rng.randrange(U64_MAX)])
            batch.append(
                observed(key, reason="gateway_died") if count is None else observed(key, Counts(input=count))
            )
            if model.get(key) is None:
                model[key] = count
        store.fold([folded(*batch, at=at)])
        if rng.random() < 0.1:
            store.close()
            store = reopen()

    totals = store.totals("i1").get(Source.ENGINE_OBSERVED, SourceTotals())
    known = [count for count in model.values() if count is not None]
    assert (len(model), len(known)) == (totals.events, totals.exact)
    assert (sum(known) if known else None) == totals.input_tokens
    assert len(model) - len(known) == totals.unmeasured_calls
    store.close()


def test_another_thread_is_a_mistake(store: Store) -> None:
    caught: list[BaseException] = []

    def read() -> None:
        try:
            store.totals("i1")
        except AssertionError as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()

    assert 1 == len(caught)


# -- kill -9 -----------------------------------------------------------------------------------------------------
FOLDER = """
import sys
from pathlib import Path
from kt_ledger.clock import SystemClock
from kt_ledger.store.sqlite import open_store
from kt_ledger.values import Completeness, Counts, Exchange, Folded, Position, Sent, Source, UsageEvent

store = open_store(Path(sys.argv[1]), clock=SystemClock())
log = "run/r1/out"
at = store.position(log)
print("open", flush=True)
while True:
    events, exchanges = [], []
    for n in range(at.offset, at.offset + 25):
        facts = dict(instance_id="i1", run_id="r1", started_at_ns=n, ended_at_ns=n)
        for source, key in ((Source.SELF_REPORTED, str(n)), (Source.ENGINE_OBSERVED, f"x{n}")):
            events.append(UsageEvent(id=key, source=source, key=key, counts=Counts(input=n, output=1),
                                     completeness=Completeness.EXACT, **facts))
        exchanges.append(Exchange(id=f"x{n}", sent=Sent.YES, state="ended", method="POST", path="/", family="f",
                                  **facts))
    after = Position(1, at.offset + 25)
    store.fold([Folded(log=log, start=at, position=after, events=tuple(events), exchanges=tuple(exchanges))])
    at = after
    print(at.offset, flush=True)
"""


@pytest.mark.long
@pytest.mark.chaos
def test_a_killed_writer_loses_nothing_that_it_reported_and_doubles_nothing(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    rng = random.Random(seed)
    path = tmp_path / "ledger.db"
    path_of_code = os.pathsep.join(sys.path)
    reported = 0

    for _ in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", FOLDER, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path_of_code},
        )
        assert child.stdout is not None
        for _ in range(rng.randrange(1, 12)):
            said = child.stdout.readline().strip()
            reported = int(said) if said.isdigit() else reported
        child.send_signal(signal.SIGKILL)
        said_later = child.stdout.read().split()
        child.wait()
        child.stdout.close()
        reported = int(said_later[-1]) if said_later and said_later[-1].isdigit() else reported

        store = open_store(path, clock=ManualClock())
        committed = store.position("run/r1/out").offset
        totals = store.totals("i1")
        exchanges = store.recent_exchanges("i1", limit=10**6)
        notes = store.notes("i1").counts
        store.close()
        assert reported <= committed <= reported + 25
        for source in Source if committed else ():
            assert (committed, sum(range(committed)), committed) == (
                totals[source].events,
                totals[source].input_tokens,
                totals[source].output_tokens,
            )
        assert committed == len(exchanges)
        assert {} == notes

    assert reported > 0
