import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kt_ledger import journal, journal_facts
from kt_ledger.clock import ManualClock
from kt_ledger.fold_journal import JournalReader
from kt_ledger.store.sqlite import SqliteStore
from kt_ledger.values import U64_MAX, Completeness, Counts, Sent

BEGUN: dict[str, Any] = {"x": "x1", "instance": "i1", "run": "r1", "at_ns": 5}


def judged(**fields: Any) -> tuple[Completeness, str | None, Counts]:
    exchange = journal_facts.closed({"at_ns": 9, **fields}, BEGUN)
    event = journal_facts.usage(exchange, fields)
    return event.completeness, event.reason, event.counts


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("a", "a"),
        ("é", "é"),
        ("a" * 600, "a" * 512),
        ("\ud800x", "?x"),
        ("a\0b", "a\ufffdb"),
        (7, None),
        (None, None),
    ],
)
def test_a_text_is_bounded_and_fit_for_sql(given_: object, kept: str | None) -> None:
    assert kept == journal_facts.text({"f": given_}, "f")


@pytest.mark.parametrize(
    ("given_", "kept"), [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, None), (-1, None), (True, None), (1.0, None)]
)
def test_a_natural_is_an_integer_in_range(given_: object, kept: int | None) -> None:
    assert kept == journal_facts.natural({"f": given_}, "f")


def test_a_truth_value_is_a_bool_only() -> None:
    assert [True, False, None, None] == [journal_facts.flag({"f": v}, "f") for v in (True, False, 1, "yes")]


@pytest.mark.parametrize(
    "counts", [{"input": -1}, {"input": True}, {"input": "9"}, {"output": U64_MAX + 1}, [1]]
)
def test_counts_that_are_none_are_a_fault_of_the_meter_not_a_zero(counts: object) -> None:
    assert (Completeness.UNKNOWN, "meter_fault", Counts()) == judged(completeness="exact", counts=counts)


@pytest.mark.parametrize(
    ("said", "reason", "counts", "meant"),
    [
        ("exact", None, {"input": U64_MAX}, ("exact", None)),
        ("exact", "upstream_cut", {"input": 1}, ("exact", None)),
        ("exact", None, {}, ("unknown", "no_usage")),
        ("exact", None, None, ("unknown", "no_usage")),
        ("partial", "upstream_cut", {"input": 1}, ("partial", "upstream_cut")),
        ("partial", None, {"input": 1}, ("partial", "meter_fault")),
        ("unknown", "no_usage", {}, ("unknown", "no_usage")),
        ("excellent", None, {"input": 1}, ("unknown", "meter_fault")),
        (None, None, {"input": 1}, ("unknown", "meter_fault")),
    ],
)
def test_a_close_that_contradicts_itself_is_never_more_than_it_shows(
    said: str | None, reason: str | None, counts: object, meant: tuple[str, str | None]
) -> None:
    completeness, why, _ = judged(completeness=said, reason=reason, counts=counts)

    assert meant == (completeness.value, why)


def test_a_raw_usage_object_is_kept_as_text_or_left_out_whole() -> None:
    exchange = journal_facts.closed({"at_ns": 9}, BEGUN)

    assert '{"a":1}' == journal_facts.usage(exchange, {"raw_usage": {"a": 1}}).raw_usage
    assert '{"a":1}' == journal_facts.usage(exchange, {"raw_usage": '{"a":1}'}).raw_usage
    assert journal_facts.usage(exchange, {"raw_usage": "x" * 20000}).raw_usage is None


def test_an_exchange_in_flight_survives_the_way_into_the_store_and_back() -> None:
    fields = {
        **BEGUN,
        "method": "POST",
        "model": "m",
        "max_tokens": U64_MAX,
        "stream": False,
        "retry_count": 2,
    }
    exchange = journal_facts.in_flight(fields, sent=True)

    again = journal_facts.in_flight(journal_facts.opened(exchange), sent=True)

    assert exchange == again


@pytest.mark.parametrize("said", [None, {}, [], "perhaps", 1])
def test_a_close_that_does_not_say_whether_it_left_did_leave(said: object) -> None:
    assert Sent.YES is journal_facts.closed({"at_ns": 9, "sent": said}, BEGUN).sent


def test_a_loss_never_ends_before_it_began() -> None:
    exchange, _ = journal_facts.lost({**BEGUN, "at_ns": 50}, sent=True, at_ns=40)

    assert 50 == exchange.ended_at_ns


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "x",
        "instance",
        "run",
        "at_ns",
        "opened_at_ns",
        "method",
        "path",
        "family",
        "model",
        "stream",
        "status",
        "max_tokens",
        "choices",
        "request_bytes",
        "retry_count",
        "completeness",
        "reason",
        "counts",
        "raw_usage",
        "service_tier",
        "request_id",
        "response_bytes",
        "first_token_ns",
        "latency_ns",
        "unsynced",
        "sent",
        "kind",
        "detail",
        "count",
        "usage_asked_by_us",
    ]
)
GOOD = {
    "x": "x1",
    "instance": "i1",
    "at_ns": 5,
    "opened_at_ns": 5,
    "completeness": "exact",
    "counts": {"input": 1},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path_factory.mktemp("ledger") / "ledger.db", clock=ManualClock())
    yield opened
    opened.close()


INCARNATIONS = itertools.count()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 7), st.dictionaries(NAMES, JSON, max_size=6)), max_size=6))
def test_no_record_that_checks_can_stop_the_ledger(
    store: SqliteStore, said: list[tuple[int, dict[str, Any]]]
) -> None:
    data = b"".join(journal.frame(type_, {**GOOD, **fields}) for type_, fields in said)
    reader = JournalReader(f"g{next(INCARNATIONS)}")

    for folded in (reader.feed(data, at_ns=9, final=True), reader.finish(at_ns=9)):
        if folded:
            store.fold([folded])

    assert reader.position == store.position(reader.log)
    assert [] == store.open_exchanges(reader.log)


@pytest.mark.parametrize(("said", "kept"), [(10**18, 10**18), (None, None), (-1, None), ("soon", None)])
def test_when_a_provider_lets_us_back_is_an_instant_or_not_known(said: object, kept: int | None) -> None:
    exchange = journal_facts.closed({"at_ns": 9, "status": 429, "retry_at_ns": said}, BEGUN)

    assert kept == exchange.retry_at_ns
