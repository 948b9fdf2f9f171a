import itertools
from pathlib import Path

import pytest

from kt_ledger import journal
from kt_ledger.clock import ManualClock
from kt_ledger.fold_journal import JournalReader
from kt_ledger.store.sqlite import SqliteStore
from kt_ledger.values import (
    U64_MAX,
    Completeness,
    Counts,
    Exchange,
    Folded,
    Position,
    Sent,
    Source,
    UsageEvent,
)

NOW_NS = 1_800_000_000_000_000_000
BEGUN = {
    "x": "x1",
    "instance": "i1",
    "run": "r1",
    "method": "POST",
    "path": "/v1/chat/completions",
    "family": "chat.completions",
}
OPEN = {
    **BEGUN,
    "at_ns": NOW_NS,
    "model": "asked",
    "stream": True,
    "request_bytes": 100,
    "max_tokens": 64,
    "choices": 2,
    "usage_asked_by_us": True,
    "retry_count": 1,
}
CLOSE = {
    **BEGUN,
    "opened_at_ns": NOW_NS,
    "at_ns": NOW_NS + 5,
    "status": 200,
    "completeness": "exact",
    "counts": {"input": 9, "output": 4},
    "raw_usage": '{"prompt_tokens":9}',
    "model": "answered",
    "service_tier": "flex",
    "request_id": "q",
    "request_bytes": 110,
    "response_bytes": 900,
    "first_token_ns": 2,
    "latency_ns": 5,
    "sent": "yes",
}


def opened(x: str = "x1", **facts: object) -> bytes:
    return journal.frame(journal.OPEN, {**OPEN, "x": x, **facts})


def sent(x: str = "x1") -> bytes:
    return journal.frame(journal.SENT, {"x": x})


def closed(x: str = "x1", **facts: object) -> bytes:
    return journal.frame(journal.CLOSE, {**CLOSE, "x": x, **facts})


def damaged(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 1])


def feed(*frames: bytes, final: bool = False, **facts: object) -> Folded:
    folded = JournalReader("g1", **facts).feed(b"".join(frames), at_ns=NOW_NS, final=final)
    assert folded is not None
    return folded


def only(found: tuple[UsageEvent, ...]) -> UsageEvent:
    (event,) = found
    return event


def test_an_open_record_is_an_exchange_in_flight() -> None:
    folded = feed(opened())

    assert () == folded.events
    assert ("journal/g1", Position(), Position(1, len(opened()))) == (
        folded.log,
        folded.start,
        folded.position,
    )
    assert (
        Exchange(
            id="x1",
            instance_id="i1",
            run_id="r1",
            sent=Sent.MAYBE,
            state="in_flight",
            method="POST",
            path="/v1/chat/completions",
            family="chat.completions",
            stream=True,
            model_asked="asked",
            max_tokens=64,
            choices=2,
            request_bytes=100,
            usage_asked_by_us=True,
            retry_count=1,
            started_at_ns=NOW_NS,
        ),
    ) == folded.exchanges


def test_a_sent_record_says_that_bytes_have_left() -> None:
    under_test = JournalReader("g1")
    under_test.feed(opened(), at_ns=NOW_NS)

    both = feed(opened(), sent())
    later = under_test.feed(sent(), at_ns=NOW_NS)

    assert later is not None
    assert [Sent.YES] == [one.sent for one in both.exchanges] == [one.sent for one in later.exchanges]


@pytest.mark.parametrize("apart", [True, False])
def test_a_close_ends_the_exchange_and_is_the_event(apart: bool) -> None:
    under_test = JournalReader("g1")
    frames = opened() + sent(), closed()
    if apart:
        under_test.feed(frames[0], at_ns=NOW_NS)

    folded = under_test.feed(frames[1] if apart else b"".join(frames), at_ns=NOW_NS)

    assert folded is not None
    (exchange,) = folded.exchanges
    assert ("ended", Sent.YES, 200, 110, 900, "asked", 64, NOW_NS + 5) == (
        exchange.state,
        exchange.sent,
        exchange.status,
        exchange.request_bytes,
        exchange.response_bytes,
        exchange.model_asked,
        exchange.max_tokens,
        exchange.ended_at_ns,
    )
    assert UsageEvent(
        id="x1",
        instance_id="i1",
        run_id="r1",
        source=Source.ENGINE_OBSERVED,
        key="x1",
        counts=Counts(input=9, output=4),
        completeness=Completeness.EXACT,
        model_asked="asked",
        model_answered="answered",
        service_tier="flex",
        request_id="q",
        raw_usage='{"prompt_tokens":9}',
        started_at_ns=NOW_NS,
        ended_at_ns=NOW_NS + 5,
    ) == only(folded.events)


def test_a_close_without_its_open_stands_alone() -> None:
    folded = feed(closed())

    (exchange,) = folded.exchanges
    assert ("i1", "POST", None, "ended") == (
        exchange.instance_id,
        exchange.method,
        exchange.model_asked,
        exchange.state,
    )
    assert Counts(input=9, output=4) == only(folded.events).counts
    assert () == folded.notes


def test_a_close_of_a_call_that_never_left_is_no_event() -> None:
    folded = feed(
        opened(), closed(sent="no", completeness="unknown", reason="client_gone_before_send", counts={})
    )

    assert () == folded.events
    assert [(Sent.NO, "client_gone_before_send")] == [(one.sent, one.reason) for one in folded.exchanges]


def test_a_local_record_is_an_exchange_that_never_left() -> None:
    local = {
        **OPEN,
        **CLOSE,
        "model": "asked",
        "run": None,
        "reason": "refused_token",
        "status": 401,
        "sent": "no",
    }

    folded = feed(journal.frame(journal.LOCAL, local))

    (exchange,) = folded.exchanges
    assert (None, Sent.NO, "ended", 401, "refused_token", "asked") == (
        exchange.run_id,
        exchange.sent,
        exchange.state,
        exchange.status,
        exchange.reason,
        exchange.model_asked,
    )
    assert () == folded.events


def test_a_note_is_passed_on_with_its_count() -> None:
    said = {"kind": "probe", "instance": "i1", "run": "r1", "at_ns": 7, "detail": "probes", "count": 12}

    (note,) = feed(journal.frame(journal.NOTE, said)).notes

    assert ("probe", "i1", "r1", 7, "probes", 12) == (
        note.kind,
        note.instance_id,
        note.run_id,
        note.at_ns,
        note.detail,
        note.count,
    )


@pytest.mark.parametrize(
    ("frames", "reason", "left"),
    [
        (opened() + sent(), "gateway_died", Sent.YES),
        (opened(), "may_not_have_been_sent", Sent.MAYBE),
    ],
)
@pytest.mark.parametrize("restart", [True, False])
def test_what_is_open_when_the_journal_ends_is_unknown_with_a_reason(
    tmp_path: Path, frames: bytes, reason: str, left: Sent, restart: bool
) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    under_test = JournalReader("g1")
    first = under_test.feed(frames, at_ns=NOW_NS)
    assert first is not None
    store.fold([first])
    assert 1 == store.in_flight("i1")
    if restart:
        log = under_test.log
        under_test = JournalReader(
            "g1", position=store.position(log), open_exchanges=store.open_exchanges(log)
        )

    last = under_test.finish(at_ns=NOW_NS + 9)

    assert last is not None
    store.fold([last])
    (exchange,) = store.recent_exchanges("i1", limit=9)
    event = only(tuple(store.recent_events("i1", limit=9)))
    assert ("ended", left, reason, 64, NOW_NS + 9) == (
        exchange.state,
        exchange.sent,
        exchange.reason,
        exchange.max_tokens,
        exchange.ended_at_ns,
    )
    assert (Completeness.UNKNOWN, reason, Counts()) == (event.completeness, event.reason, event.counts)
    assert 0 == store.in_flight("i1")
    assert under_test.finish(at_ns=NOW_NS) is None
    store.close()


def test_an_exchange_kept_in_the_store_closes_as_if_nothing_had_happened(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    store.fold([feed(opened(), sent())])
    kept = store.open_exchanges("journal/g1")

    restarted = JournalReader("g1", position=store.position("journal/g1"), open_exchanges=kept)
    folded = restarted.feed(closed(), at_ns=NOW_NS)

    assert folded is not None
    assert feed(opened(), sent(), closed()).exchanges == folded.exchanges
    store.close()


def test_damage_is_noted_and_what_follows_is_read() -> None:
    folded = feed(opened("x1"), damaged(sent("x1")), closed("x1"))

    assert ["x1"] == [event.key for event in folded.events]
    (note,) = folded.notes
    assert ("quarantined", "") == (note.kind, note.instance_id)


def test_a_lost_open_is_noted_where_its_request_left_and_the_close_still_counts() -> None:
    folded = feed(damaged(opened()), sent(), closed())

    assert ["quarantined", "quarantined"] == [note.kind for note in folded.notes]
    assert 9 == only(folded.events).counts.input


def test_a_torn_last_record_waits_in_a_live_journal_and_is_damage_in_a_dead_one() -> None:
    live, dead = JournalReader("g1"), JournalReader("g1")
    torn = opened() + closed()[:50]

    waiting = live.feed(torn, at_ns=NOW_NS)
    over = dead.feed(torn, at_ns=NOW_NS, final=True)

    assert waiting is not None and over is not None
    assert () == waiting.notes
    assert Position(1, len(opened())) == live.wanted
    assert ["quarantined"] == [note.kind for note in over.notes]
    assert Position(1, len(torn)) == dead.wanted


def test_a_later_version_stops_the_reader_says_so_once_and_gives_nothing_up() -> None:
    under_test = JournalReader("g1")
    newer = b"KTJ2" + closed()[4:]

    folded = under_test.feed(opened() + newer, at_ns=NOW_NS)
    again = under_test.feed(newer, at_ns=NOW_NS)

    assert folded is not None
    assert ["newer_schema"] == [note.kind for note in folded.notes]
    assert (True, None, Position(1, len(opened()))) == (under_test.stopped, again, under_test.wanted)


@pytest.mark.parametrize(
    "frame",
    [
        journal.frame(journal.OPEN, {}),
        opened(x=7),
        opened(instance=None),
        opened(at_ns="now"),
        opened(at_ns=-1),
        opened(at_ns=2**63),
        journal.frame(journal.CLOSE, {"x": "x1"}),
        journal.frame(journal.LOCAL, {"x": "x1"}),
        sent("nobody"),
    ],
)
def test_a_record_that_lacks_what_a_row_needs_is_quarantined(frame: bytes) -> None:
    folded = feed(frame)

    assert ((), ()) == (folded.events, folded.exchanges)
    assert ["quarantined"] == [note.kind for note in folded.notes]


def test_unknown_records_and_fields_are_ignored() -> None:
    folded = feed(journal.frame(journal.HEADER, {}), journal.frame(42, {"x": "x1"}), opened(surprise=1))

    assert (1, ()) == (len(folded.exchanges), folded.notes)


def test_feeding_nothing_yields_nothing() -> None:
    assert JournalReader("g1").feed(b"", at_ns=NOW_NS, final=True) is None
    assert JournalReader("g1").finish(at_ns=NOW_NS) is None


@pytest.mark.parametrize("size", [17, 100, 400])
def test_what_a_journal_means_does_not_depend_on_how_it_is_read(tmp_path: Path, size: int) -> None:
    """Each piece of growth is read by a new reader that knows only what the store kept."""
    data = b"".join(
        [
            opened("a"),
            opened("b"),
            sent("a"),
            closed("a"),
            opened("c"),
            damaged(sent("c")),
            sent("b"),
            closed("b", completeness="partial", reason="upstream_cut"),
            opened("d"),
        ]
    )
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    log = "journal/g1"

    for upto in itertools.chain(range(0, len(data), size), [len(data)]):
        under_test = JournalReader(
            "g1", position=store.position(log), open_exchanges=store.open_exchanges(log)
        )
        if folded := under_test.feed(data[under_test.wanted.offset : upto], at_ns=NOW_NS):
            store.fold([folded])
    last = under_test.finish(at_ns=NOW_NS)
    assert last is not None
    store.fold([last])

    reasons = {event.key: event.reason for event in store.recent_events("i1", limit=9)}
    lost = "may_not_have_been_sent"
    assert {"a": None, "b": "upstream_cut", "c": lost, "d": lost} == reasons
    assert {"quarantined": 1} == store.notes("").counts
    assert U64_MAX > store.position(log).offset == len(data)
    store.close()
