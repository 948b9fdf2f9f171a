import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_ledger.clock import ManualClock
from kt_ledger.fold_run import RunReader, log_name
from kt_ledger.store.sqlite import SqliteStore
from kt_ledger.values import Completeness, Counts, Folded, Position, Source

NOW_NS = 1_800_000_000_000_000_000


def report(sequence: int, tokens: int = 7) -> bytes:
    return b'KTESIO_USAGE {"sequence":%d,"input_tokens":%d,"output_tokens":0}\n' % (sequence, tokens)


def reader(position: Position | None = None, **facts: object) -> RunReader:
    return RunReader(
        "i1", "r1", position=position, new_id=(f"id{n}" for n in itertools.count()).__next__, **facts
    )


def keys(*batches: Folded | None) -> list[str]:
    return [event.key for folded in batches if folded for event in folded.events]


def test_a_report_becomes_an_exact_event_of_its_run() -> None:
    line = b'KTESIO_USAGE {"sequence":4,"input_tokens":9,"output_tokens":3,"model":"m","request_id":"q"}\n'

    folded = reader().feed(line, at_ns=NOW_NS)

    assert folded is not None
    (event,) = folded.events
    assert ("run/r1/out", Position(), Position(1, len(line))) == (folded.log, folded.start, folded.position)
    assert ("i1", "r1", Source.SELF_REPORTED, "4", Completeness.EXACT) == (
        event.instance_id,
        event.run_id,
        event.source,
        event.key,
        event.completeness,
    )
    assert (Counts(input=9, output=3), "m", "q", NOW_NS) == (
        event.counts,
        event.model_answered,
        event.request_id,
        event.ended_at_ns,
    )


def test_output_without_reports_only_moves_the_position() -> None:
    folded = reader().feed(b"hello\nworld", at_ns=NOW_NS)

    assert Folded(log=log_name("r1"), start=Position(), position=Position(1, 6)) == folded


def test_an_unfinished_line_moves_nothing() -> None:
    assert reader().feed(b"KTESIO_USA", at_ns=NOW_NS) is None


def test_malformed_lines_are_counted_in_one_note_with_the_latest_reason() -> None:
    text = b"KTESIO_USAGE nonsense\n" + report(1) + b"KTESIO_USAGE {}\n"

    folded = reader().feed(text, at_ns=NOW_NS)

    assert folded is not None
    (note,) = folded.notes
    assert ("malformed", 2, "r1") == (note.kind, note.count, note.run_id)
    assert "sequence is missing" in note.detail
    assert ["1"] == keys(folded)


def test_a_report_split_over_two_segments_is_read_and_its_start_is_not_passed_before() -> None:
    line, under_test = report(1), reader()

    first = under_test.feed(b"hi\n" + line[:20], at_ns=NOW_NS)
    under_test.next_segment()
    wanted = under_test.wanted
    second = under_test.feed(line[20:30], at_ns=NOW_NS)
    third = under_test.feed(line[30:], at_ns=NOW_NS)

    assert first is not None and third is not None
    assert Position(1, 3) == first.position
    assert Position(2, 0) == wanted
    assert second is None
    assert (Position(1, 3), Position(2, len(line) - 20)) == (third.start, third.position)
    assert ["1"] == keys(third)


def test_the_last_line_counts_without_a_newline_once_the_log_has_ended() -> None:
    under_test = reader()
    under_test.feed(report(1) + report(2)[:-1], at_ns=NOW_NS)

    last = under_test.finish(at_ns=NOW_NS)

    assert ["2"] == keys(last)
    assert under_test.wanted == under_test.position
    assert under_test.finish(at_ns=NOW_NS) is None


def test_a_line_too_long_is_malformed_once_and_its_rest_is_no_line_after_a_restart() -> None:
    """The rest of an overlong line may well look like a report: the position says that it is none."""
    under_test = reader(limit_bytes=64)
    first = under_test.feed(b"KTESIO_USAGE " + b"x" * 100, at_ns=NOW_NS)

    assert first is not None
    assert ["malformed"] == [note.kind for note in first.notes]
    assert Position(1, 113, skipping=True) == first.position
    again = reader(first.position, limit_bytes=64)
    second = again.feed(report(1) + report(2), at_ns=NOW_NS)
    assert ["2"] == keys(second)
    assert second is not None and () == second.notes


def test_ten_megabytes_without_a_newline_let_the_position_advance() -> None:
    under_test = reader()

    for _ in range(160):
        under_test.feed(b"x" * 65536, at_ns=NOW_NS)

    assert Position(1, 160 * 65536, skipping=True) == under_test.position


def test_a_log_that_was_cut_short_is_a_gap_and_goes_on_at_its_end() -> None:
    under_test = reader(Position(2, 500))

    folded = under_test.clamp(100, at_ns=NOW_NS)
    after = under_test.feed(report(1), at_ns=NOW_NS)

    assert ["gap"] == [note.kind for note in folded.notes]
    assert (Position(2, 500), Position(2, 100)) == (folded.start, folded.position)
    assert ["1"] == keys(after)


def test_a_segment_that_is_gone_is_a_gap_and_the_next_one_is_read() -> None:
    under_test = reader(Position(2, 500))

    folded = under_test.missing(at_ns=NOW_NS)

    assert ["gap"] == [note.kind for note in folded.notes]
    assert Position(3, 0) == folded.position == under_test.wanted


PARTS = st.sampled_from(
    [report(1), report(2), b"noise\n", b"\r\n", b"KTESIO_USAGE bad\n", b"\xff", b"y" * 90]
)


@given(st.lists(PARTS, max_size=12), st.lists(st.integers(0, 400), max_size=6))
def test_events_do_not_depend_on_pieces_segments_or_restarts(parts: list[bytes], at: list[int]) -> None:
    data = b"".join(parts)
    whole = list(_all(reader(limit_bytes=80), [data]))
    places = sorted({min(place, len(data)) for place in at} | {0, len(data)})
    segments = [data[a:b] for a, b in itertools.pairwise(places)]

    in_segments = list(_all(reader(limit_bytes=80), segments))
    restarted = list(_restarted(segments))

    assert _meaning(whole) == _meaning(in_segments) == _meaning(restarted)


def _all(under_test: RunReader, segments: list[bytes]) -> Iterator[Folded]:
    for number, segment in enumerate(segments, 1):
        if number > 1:
            under_test.next_segment()
        if folded := under_test.feed(segment, at_ns=NOW_NS):
            yield folded
    if last := under_test.finish(at_ns=NOW_NS):
        yield last


def _restarted(segments: list[bytes]) -> Iterator[Folded]:
    """Read each segment with a reader of its own, which begins where the last one's position was."""
    position = Position()
    for upto in range(1, len(segments) + 1):
        under_test = reader(position, limit_bytes=80)
        for number in range(position.segment, upto + 1):
            if number > position.segment:
                under_test.next_segment()
            offset = position.offset if number == position.segment else 0
            if folded := under_test.feed(segments[number - 1][offset:], at_ns=NOW_NS):
                yield folded
        position = under_test.position
    if segments and (last := under_test.finish(at_ns=NOW_NS)):
        yield last


def _meaning(batches: list[Folded]) -> tuple[list[str], int]:
    return keys(*batches), sum(note.count for folded in batches for note in folded.notes)


@pytest.mark.parametrize("size", [1, 7, 64, 4096])
def test_a_whole_dialogue_adds_up_in_the_ledger(tmp_path: Path, size: int) -> None:
    """Replay, gap, late, conflict, malformed, CRLF, invalid UTF-8 and a tail, through the real store."""
    log = b"".join(
        [
            b"starting\r\n",
            report(0),
            report(1).replace(b"\n", b"\r\n"),
            report(1),
            report(4),
            report(3),
            report(4, tokens=8),
            b"KTESIO_USAGE \xff\n",
            b"KTESIO_USAGE {}\n",
            report(6)[:-1],
        ]
    )
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())

    under_test = reader()
    for at in range(0, len(log), size):
        if folded := under_test.feed(log[at : at + size], at_ns=NOW_NS):
            store.fold([folded])
    last = under_test.finish(at_ns=NOW_NS)
    assert last is not None
    store.fold([last])

    totals = store.totals("i1")[Source.SELF_REPORTED]
    assert (5, 35) == (totals.events, totals.input_tokens)
    assert {"replay": 1, "late": 1, "conflict": 1, "malformed": 2, "gap": 2} == store.notes("i1").counts
    assert Position(1, len(log)) == store.position("run/r1/out")
    store.close()
