import threading
from pathlib import Path

import pytest

from kt_ledger import journal, reading
from kt_ledger.clock import ManualClock
from kt_ledger.fold_journal import JournalReader
from kt_ledger.fold_run import RunReader
from kt_ledger.layout import RunLayout, journal_segment
from kt_ledger.reading import read_log
from kt_ledger.values import Folded, Position

CLOCK = ManualClock()


def report(sequence: int) -> bytes:
    return b'KTESIO_USAGE {"sequence":%d,"input_tokens":1,"output_tokens":0}\n' % sequence


def opened(x: str, **facts: object) -> bytes:
    return journal.frame(journal.OPEN, {"x": x, "instance": "i", "at_ns": 1, **facts})


def closed(x: str) -> bytes:
    facts = {"completeness": "exact", "counts": {"input": 1}, "at_ns": 2, "opened_at_ns": 1, "instance": "i"}
    return journal.frame(journal.CLOSE, {"x": x, **facts})


class RunLog:
    """A Run's segments and a reader of them."""

    def __init__(self, folder: Path, position: Position | None = None) -> None:
        self.layout = RunLayout(folder)
        self.reader = RunReader("i", "r", position=position)

    def path(self, number: int) -> Path:
        return self.layout.segment("out", number)

    def write(self, number: int, data: bytes) -> None:
        with self.path(number).open("ab") as segment:
            segment.write(data)

    def read(self, *, closed: bool = False) -> list[Folded]:
        return list(read_log(self.reader, self.path, clock=CLOCK, closed=closed))


class Journal(RunLog):
    """A journal's segments and a reader of them."""

    def __init__(self, folder: Path, position: Position | None = None) -> None:
        self.folder = folder
        self.reader = JournalReader("g", position=position)  # type: ignore[assignment]

    def path(self, number: int) -> Path:
        return journal_segment(self.folder, number)


def keys(batches: list[Folded]) -> list[str]:
    return [event.key for folded in batches for event in folded.events]


def kinds(batches: list[Folded]) -> list[str]:
    return [note.kind for folded in batches for note in folded.notes]


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    log = RunLog(tmp_path)

    assert [] == log.read()
    log.write(1, report(1))
    assert ["1"] == keys(log.read())
    assert [] == log.read()


def test_segments_are_read_one_after_another_and_batches_join_up(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.write(1, report(1) + report(2)[:30])
    log.write(2, report(2)[30:])
    log.write(3, report(3)[:-1])

    batches = log.read(closed=True)

    assert ["1", "2", "3"] == keys(batches)
    assert Position() == batches[0].start
    assert [folded.position for folded in batches[:-1]] == [folded.start for folded in batches[1:]]
    assert Position(3, len(report(3)) - 1) == batches[-1].position


def test_the_last_line_of_a_live_log_is_left_until_it_is_whole(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.write(1, report(1) + report(2)[:-1])

    assert ["1"] == keys(log.read())
    log.write(1, b"\n")
    assert ["2"] == keys(log.read())


def test_a_segment_is_left_only_when_its_successor_was_there_before_its_end_was_seen(tmp_path: Path) -> None:
    """A writer adds to the first segment and starts the second between any two looks: nothing may be passed over."""
    log = RunLog(tmp_path)
    log.write(1, report(0))
    looked: list[int] = []

    def path(number: int) -> Path:
        looked.append(number)
        if len(looked) == 1:  # the first look is for the successor; the writer goes on right after it
            answer = log.path(number)
            assert not answer.exists()
        if len(looked) == 2:
            log.write(1, report(1))
            log.write(2, report(2))
        return log.path(number)

    found = keys(list(read_log(log.reader, path, clock=CLOCK)))
    found += keys(list(read_log(log.reader, path, clock=CLOCK)))

    assert ["0", "1", "2"] == found


def test_more_than_one_piece_is_read_in_pieces(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    many = reading.PIECE_BYTES * 3 // len(report(1000))
    log.write(1, b"".join(report(1000 + n) for n in range(many)))

    batches = log.read()

    assert [str(1000 + n) for n in range(many)] == keys(batches)
    assert 3 <= len(batches) <= 4


@pytest.mark.parametrize("kind", [RunLog, Journal])
def test_a_log_shorter_than_what_was_read_is_a_gap_and_goes_on_at_its_end(
    tmp_path: Path, kind: type[RunLog]
) -> None:
    data = report(1) if kind is RunLog else closed("1")
    log = kind(tmp_path, Position(1, 10_000))
    log.write(1, b"" if kind is Journal else b"\n")

    batches = log.read()
    log.write(1, data)

    assert ["gap"] == kinds(batches)
    assert ["1"] == keys(log.read())


@pytest.mark.parametrize("kind", [RunLog, Journal])
def test_a_lost_segment_is_a_gap_and_the_next_one_is_read(tmp_path: Path, kind: type[RunLog]) -> None:
    log = kind(tmp_path, Position(1, 10))
    log.write(2, report(1) if kind is RunLog else closed("1"))

    batches = log.read()

    assert (["gap"], ["1"]) == (kinds(batches), keys(batches))


@pytest.mark.parametrize("kind", [RunLog, Journal])
def test_a_log_that_vanished_whole_is_a_gap_once(tmp_path: Path, kind: type[RunLog]) -> None:
    log = kind(tmp_path, Position(4, 10))

    assert ["gap"] == kinds(log.read())
    assert [] == log.read()
    assert Position(4, 0) == log.reader.wanted


def test_a_closed_journal_gives_up_what_is_open_and_a_live_one_does_not(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    log.write(1, opened("a") + opened("b") + closed("b") + bytes(4096))

    assert ["b"] == keys(log.read())
    last = log.read(closed=True)

    assert ["a"] == keys(last)
    assert ["may_not_have_been_sent"] == [event.reason for folded in last for event in folded.events]


def test_a_torn_record_at_the_end_of_a_segment_that_has_a_successor_is_damage(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    log.write(1, closed("a") + closed("b")[:40] + bytes(500))
    before = log.read()
    log.write(2, closed("c"))

    after = log.read()

    assert (["a"], []) == (keys(before), kinds(before))
    assert (["c"], ["quarantined"]) == (keys(after), kinds(after))


def test_zeros_longer_than_a_piece_before_records_of_a_dead_journal_are_damage(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    log.write(1, closed("a") + bytes(reading.LIVE_LIMIT_BYTES * 2) + closed("b"))

    batches = log.read(closed=True)

    assert (["a", "b"], ["quarantined"]) == (keys(batches), kinds(batches))


def test_preallocated_space_of_a_live_journal_is_read_to_a_bound_only(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    log.write(1, closed("a") + bytes(reading.LIVE_LIMIT_BYTES * 3))

    assert ["a"] == keys(log.read())
    assert [] == log.read()
    assert Position(1, len(closed("a"))) == log.reader.wanted


def test_a_record_longer_than_a_piece_is_read(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    log.write(1, opened("a", padding="x" * (reading.PIECE_BYTES * 2)) + closed("a"))

    assert ["a"] == keys(log.read())


@pytest.mark.parametrize("closed_", [True, False])
def test_a_later_version_is_not_passed_even_when_segments_follow(tmp_path: Path, closed_: bool) -> None:
    log = Journal(tmp_path)
    log.write(1, opened("a") + b"KTJ2" + closed("a")[4:])
    log.write(2, b"KTJ2" + closed("b")[4:])

    batches = log.read(closed=closed_)

    assert (["newer_schema"], []) == (kinds(batches), keys(batches))
    assert Position(1, len(opened("a"))) == log.reader.wanted
    assert [] == log.read(closed=closed_)


def test_a_writer_at_full_speed_that_rotates_loses_nothing(tmp_path: Path) -> None:
    """A real writer in another thread, odd cuts and many segments; the reader polls until the writer is done."""
    log = RunLog(tmp_path)
    total, done = 3000, threading.Event()
    data = b"".join(report(n) for n in range(total))

    def write() -> None:
        for number, at in enumerate(range(0, len(data), 1777), 1):
            piece = data[at : at + 1777]
            with log.path(number).open("ab", buffering=0) as segment:
                for cut in range(0, len(piece), 499):
                    segment.write(piece[cut : cut + 499])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    batches: list[Folded] = []
    while not done.is_set():
        batches += log.read()
    writer.join()
    batches += log.read(closed=True)

    assert [str(n) for n in range(total)] == keys(batches)
