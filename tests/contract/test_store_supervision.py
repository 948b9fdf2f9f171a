"""What supervision asks of every store: what happened in one order, calls with their usage, the provider's "later"."""

from collections.abc import Callable, Iterator

import pytest

from kt_ledger.records import EventRow, InstanceRow, Limited, RunRow, State, TransitionRow
from kt_ledger.store import NameTaken, Store
from kt_ledger.values import Completeness, Counts, Exchange, Folded, Note, Position, Sent, Source, UsageEvent

START_NS = 1_800_000_000_000_000_000


@pytest.fixture
def store(reopen: Callable[[], Store]) -> Iterator[Store]:
    opened = reopen()
    opened.add_instance(instance())
    yield opened
    opened.close()


def instance(name: str = "bot", id_: str = "i1") -> InstanceRow:
    return InstanceRow(id=id_, name=name, kind="command", adapter="{}", created_at_ns=START_NS)


def moved(to: State, *, frm: State = State.REGISTERED, at_ns: int = START_NS) -> TransitionRow:
    cause = {"kind": "command", "command": "start"}
    return TransitionRow(instance_id="i1", prior_state=frm, new_state=to, cause=cause, at_ns=at_ns)


def call(id_: str, **facts: object) -> Exchange:
    defaults: dict[str, object] = {
        "instance_id": "i1",
        "run_id": "r1",
        "sent": Sent.YES,
        "state": "ended",
        "method": "POST",
        "path": "/v1/chat/completions",
        "family": "chat.completions",
        "status": 200,
        "started_at_ns": START_NS,
        "ended_at_ns": START_NS + 1,
    }
    return Exchange(id=id_, **{**defaults, **facts})


def used(key: str, source: Source = Source.ENGINE_OBSERVED, **facts: object) -> UsageEvent:
    defaults: dict[str, object] = {
        "id": f"event-{key}",
        "instance_id": "i1",
        "run_id": "r1",
        "counts": Counts(input=10, output=5),
        "completeness": Completeness.EXACT,
        "started_at_ns": START_NS,
        "ended_at_ns": START_NS + 1,
    }
    return UsageEvent(key=key, source=source, **{**defaults, **facts})


def fold(store: Store, *, exchanges: tuple[Exchange, ...] = (), events: tuple[UsageEvent, ...] = ()) -> None:
    log = "journal/g1"
    at = Position(1, store.position(log).offset + 1)
    store.fold([Folded(log=log, position=at, exchanges=exchanges, events=events)])


def since(store: Store, after: int) -> list[EventRow]:
    return store.events(after=after)


# -- what an instance remembers ----------------------------------------------------------------------------------
def test_what_restarts_remember_and_what_memory_is_attached_survive(reopen: Callable[[], Store]) -> None:
    store = reopen()
    store.add_instance(instance())
    store.set_restart("i1", {"count": 3, "nested": {"a": [1, None]}})
    store.set_memory("i1", "filesystem")
    store.close()

    store = reopen()
    row = store.instance("bot")

    assert row is not None
    assert ({"count": 3, "nested": {"a": [1, None]}}, "filesystem") == (row.restart, row.memory)
    store.set_restart("i1", None)
    store.set_memory("i1", None)
    assert instance() == store.instance("bot")
    store.close()


def test_a_move_keeps_what_restarts_remember_unless_it_is_told_otherwise(store: Store) -> None:
    seen = []
    store.set_restart("i1", {"count": 1})

    for told in ({}, {"restart": {"count": 2}}, {"restart": None}):
        store.move(moved(State.STARTING), **told)
        row = store.instance("bot")
        seen.append(row.restart if row else "gone")

    assert [{"count": 1}, {"count": 2}, None] == seen


# -- what happened -----------------------------------------------------------------------------------------------
def test_a_move_is_an_event_of_the_contract(store: Store) -> None:
    before = store.add_event("note", None, {}, START_NS)

    store.move(moved(State.STARTING, at_ns=START_NS + 7))

    document = {
        "schema_version": 1,
        "instance": "bot",
        "prior_state": "registered",
        "new_state": "starting",
        "cause": {"kind": "command", "command": "start"},
        "at": "2027-01-15T08:00:00Z",
    }
    wanted = EventRow(
        seq=before + 1, at_ns=START_NS + 7, instance_id="i1", kind="transition", document=document
    )
    assert [wanted] == since(store, before)


def test_a_move_that_fails_is_no_event_and_leaves_no_hole(store: Store) -> None:
    before = store.add_event("note", None, {}, START_NS)
    stray = RunRow(id="r1", instance_id="nobody", token="t", started_at_ns=START_NS)

    with pytest.raises(Exception, match="FOREIGN KEY"):
        store.move(moved(State.STARTING), run=stray)

    assert [] == since(store, before)
    assert before + 1 == store.add_event("note", None, {}, START_NS)


def test_events_are_numbered_in_one_order_across_instances_and_openings(reopen: Callable[[], Store]) -> None:
    store = reopen()
    first = store.add_event("a", "i1", {"text": "naïve \ud800"}, START_NS)
    store.close()
    store = reopen()

    second = store.add_event("b", None, {}, START_NS - 5)

    assert first + 1 == second
    assert ["a", "b"] == [row.kind for row in store.events(after=first - 1)]
    assert "naïve \ud800" == store.events(after=first - 1)[0].document["text"]
    store.close()


def test_events_are_read_from_a_number_on_in_pages_and_of_one_instance(store: Store) -> None:
    base = store.add_event("base", None, {}, START_NS)
    for n in range(10):
        store.add_event(f"k{n}", "i1" if n % 2 else "i2", {}, START_NS)

    page = store.events(after=base + 3, limit=2)

    assert ["k3", "k4"] == [row.kind for row in page]
    assert ["k1", "k3"] == [row.kind for row in store.events(after=base, limit=2, instance_id="i1")]
    assert [] == store.events(after=base + 10)


def test_registration_and_removal_are_events_and_the_name_stays_with_them(store: Store) -> None:
    store.remove_instance("i1", at_ns=START_NS + 5_000_000_000)

    first, second = store.events()

    assert ("registered", "command", "bot") == (
        first.kind,
        first.document["adapter_kind"],
        first.document["instance"],
    )
    assert ("removed", "i1", "bot", "2027-01-15T08:00:05Z") == (
        second.kind,
        second.document["instance_id"],
        second.document["instance"],
        second.document["at"],
    )


def test_a_refused_registration_is_no_event(store: Store) -> None:
    with pytest.raises(NameTaken):
        store.add_instance(instance(id_="i2"))

    assert ["i1"] == [row.instance_id for row in store.events()]


def test_a_batch_is_one_update_for_each_run_and_source(store: Store) -> None:
    before = store.last_event()

    fold(
        store,
        events=(
            used("x1", counts=Counts(input=70, cache_read=30, output=5)),
            used("x2", counts=Counts(), completeness=Completeness.UNKNOWN, reason="no_usage"),
            used("7", Source.SELF_REPORTED),
            used("x3", run_id="r2"),
        ),
    )

    updates = [row.document for row in store.events(after=before)]
    assert {"schema_version": 1, "instance": "bot"}.items() <= updates[0].items()
    assert {
        "instance": "bot",
        "run_id": "r1",
        "input_tokens": None,
        "output_tokens": None,
        "cached_tokens": None,
        "metering_source": "engine-observed",
        "sequence": None,
        "occurred_at": "2027-01-15T08:00:00Z",
        "key": "x2",
        "completeness": "unknown",
        "reason": "no_usage",
    } == updates[0]["event"]
    assert {
        "events": 2,
        "unmeasured_calls": 1,
        "input_tokens": 100,
        "output_tokens": 5,
        "cached_tokens": 30,
    } == updates[0]["added"]
    assert ("self-reported", 7, "r1") == tuple(
        updates[1]["event"][name] for name in ("metering_source", "sequence", "run_id")
    )
    assert "r2" == updates[2]["event"]["run_id"]
    assert 3 == len(updates)


def test_a_batch_that_counts_nothing_new_is_no_update(store: Store) -> None:
    fold(store, events=(used("x1"),))
    before = store.last_event()

    fold(store, events=(used("x1"),), exchanges=(call("x9", sent=Sent.NO, status=403),))

    assert [] == store.events(after=before)


def test_a_real_close_adds_tokens_and_no_event(store: Store) -> None:
    fold(
        store,
        events=(used("x1", counts=Counts(), completeness=Completeness.UNKNOWN, reason="gateway_died"),),
    )

    fold(store, events=(used("x1", counts=Counts(input=2**64)),))

    added = store.latest_events(limit=1)[0].document["added"]
    assert (0, -1, 2**64) == (added["events"], added["unmeasured_calls"], added["input_tokens"])


def test_usage_of_somebody_unknown_is_an_event_without_a_name(store: Store) -> None:
    fold(store, events=(used("x1", instance_id="stranger"),))

    [row] = store.latest_events(limit=1)

    assert ("stranger", None, "usage_update") == (row.instance_id, row.document["instance"], row.kind)


def test_the_latest_events_and_the_last_number_are_known(store: Store) -> None:
    written = store.events_written
    last = [store.add_event(f"k{n}", "i1" if n % 2 else None, {}, START_NS) for n in range(6)][-1]

    assert last == store.last_event()
    assert 6 == store.events_written - written
    assert ["k4", "k5"] == [row.kind for row in store.latest_events(limit=2)]
    assert ["k3", "k5"] == [row.kind for row in store.latest_events(limit=2, instance_id="i1")]


# -- calls with their usage --------------------------------------------------------------------------------------
def test_a_call_keeps_its_usage_however_many_self_reports_follow(store: Store) -> None:
    fold(store, exchanges=(call("x1"), call("x2", sent=Sent.NO, status=403)), events=(used("x1"),))
    fold(store, events=tuple(used(str(n), Source.SELF_REPORTED) for n in range(200)))

    found = store.recent_calls("i1", 10)

    assert [(call("x1"), used("x1")), (call("x2", sent=Sent.NO, status=403), None)] == found


def test_calls_are_the_latest_oldest_first_and_never_another_instances_or_runs_usage(store: Store) -> None:
    fold(
        store,
        exchanges=(call("x1"), call("x2", run_id="r2"), call("x3", run_id=None)),
        events=(used("x2"), used("x3", run_id=None), used("x1", instance_id="i2")),
    )

    found = store.recent_calls("i1", 10)

    second = store.numbered_calls("i1", limit=1)[0][0].seq - 1
    assert ["x1"] == [row.exchange.id for row in store.numbered_calls("i1", limit=9, before=second)[0]]
    assert ["x3"] == [row.exchange.id for row in store.numbered_calls("i1", limit=9, after=second)[0]]
    assert [second] == [row.seq for row in store.numbered_calls("i1", limit=1, also=[second, 99])[1]]
    assert [("x1", None), ("x2", None), ("x3", "x3")] == [(c.id, e.key if e else None) for c, e in found]
    assert ["x2", "x3"] == [c.id for c, _ in store.recent_calls("i1", 2)]
    assert [] == store.recent_calls("i9", 2)


def test_when_a_provider_lets_us_back_is_kept_with_the_call(store: Store) -> None:
    later = call("x1", status=429, retry_at_ns=START_NS + 60_000_000_000)

    fold(store, exchanges=(later,))

    assert [(later, None)] == store.recent_calls("i1", 1)


# -- the provider's "later" --------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_run_whose_last_call_was_told_later_is_limited(store: Store, status: int) -> None:
    fold(store, exchanges=(call("x1"), call("x2", status=status, ended_at_ns=START_NS + 9, retry_at_ns=7)))

    assert Limited(status=status, ended_at_ns=START_NS + 9, retry_at_ns=7) == store.last_limited("r1")


@pytest.mark.parametrize(
    ("others", "limited"),
    [
        ((call("y", ended_at_ns=START_NS + 10),), False),  # a later success
        ((call("y", ended_at_ns=START_NS + 4),), True),  # an earlier one
        ((call("y", ended_at_ns=START_NS + 10, run_id="r2"),), True),  # another Run's
        ((call("y", ended_at_ns=START_NS + 10, status=500),), False),  # a later failure of another kind
        ((call("y", ended_at_ns=START_NS + 10, status=403, sent=Sent.NO),), True),  # our own refusal
        ((call("y", ended_at_ns=None, status=None, state="in_flight"),), True),  # one that is under way
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_only_the_latest_end_counts(
    store: Store, others: tuple[Exchange, ...], limited: bool, first: bool
) -> None:
    later = call("x", status=429, ended_at_ns=START_NS + 5)

    fold(store, exchanges=(later, *others) if first else (*others, later))

    assert limited == (store.last_limited("r1") is not None)


def test_our_own_refusal_is_no_providers_later(store: Store) -> None:
    fold(store, exchanges=(call("x", status=429, sent=Sent.NO),))

    assert store.last_limited("r1") is None
    assert store.last_limited("r9") is None


# -- what of usage is a lower bound ------------------------------------------------------------------------------
def note(kind: str, run_id: str | None = "r1") -> Note:
    return Note(kind=kind, instance_id="i1", run_id=run_id, at_ns=START_NS, detail="x")


def told(store: Store, *notes: Note, events: tuple[UsageEvent, ...] = ()) -> tuple[bool, bool]:
    log = "run/r1/out"
    at = Position(1, store.position(log).offset + 1)
    store.fold([Folded(log=log, position=at, notes=notes, events=events)])
    summary = store.summary("i1", run_id="r1")
    return summary.uncounted, summary.run_uncounted


@pytest.mark.parametrize(
    ("kind", "uncounted"), [("malformed", True), ("gap", True), ("late", False), ("replay", False)]
)
def test_a_finding_that_stands_for_usage_is_uncounted(store: Store, kind: str, uncounted: bool) -> None:
    assert (uncounted, uncounted) == told(store, note(kind))


def test_another_runs_finding_is_the_instances_alone(store: Store) -> None:
    assert (True, False) == told(store, note("malformed", run_id="r2"))


def test_a_missing_sequence_is_uncounted_until_it_arrives(store: Store) -> None:
    def said(*keys: str) -> tuple[UsageEvent, ...]:
        return tuple(used(key, Source.SELF_REPORTED) for key in keys)

    seen = [told(store, events=said(*keys)) for keys in (("1", "2"), ("4",), ("3",), (str(2**64 - 1),))]

    assert [(False, False), (True, True), (False, False), (True, True)] == seen


def test_a_summary_says_what_the_single_reads_say(store: Store) -> None:
    fold(store, exchanges=(call("x", state="in_flight", status=None, ended_at_ns=None),), events=(used("y"),))
    fold(store, events=(used("1", Source.SELF_REPORTED, run_id="r2"),))

    summary = store.summary("i1", run_id="r2")

    assert store.totals("i1") == summary.totals
    assert store.totals("i1", run_id="r2") == summary.run_totals
    assert 1 == summary.in_flight
    assert {} == store.summary("i9", run_id=None).totals


def test_removed_instances_are_listed_latest_first_and_found_by_id(store: Store) -> None:
    store.remove_instance("i1", at_ns=START_NS + 1)
    store.add_instance(instance(id_="i2"))
    store.remove_instance("i2", at_ns=START_NS + 2)
    store.add_instance(instance(id_="i3"))

    assert ["i2", "i1"] == [row.id for row in store.removed_instances(limit=9)]
    assert ["i2"] == [row.id for row in store.removed_instances(limit=1)]
    found = store.instance_by_id("i1")
    assert found is not None
    assert START_NS + 1 == found.removed_at_ns
    assert store.instance_by_id("i9") is None


def test_a_cursor_is_where_it_was_left(reopen: Callable[[], Store]) -> None:
    store = reopen()
    first = store.cursor("hooks")
    store.set_cursor("hooks", 3)
    store.set_cursor("hooks", 8)
    store.close()

    store = reopen()

    assert (None, 8, None) == (first, store.cursor("hooks"), store.cursor("other"))
    store.close()
