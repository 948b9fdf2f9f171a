"""Secrets in files that a keeper writes: whatever the cuts, no byte of one is read, and no position changes."""

import itertools
import random
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kt_ledger.clock import SystemClock
from kt_ledger.fold_run import RunReader
from kt_ledger.layout import RunLayout
from kt_ledger.reading import read_log
from kt_supervisor.engine.output import run_logs, scrubbing
from kt_supervisor.engine.output.cursor import Cursor
from kt_supervisor.engine.output.known_secrets import KnownSecrets
from kt_supervisor.engine.output.positions import Place
from kt_supervisor.engine.output.run_logs import KnownRun
from kt_supervisor.engine.output.scrubbing import RunScrubbing
from kt_supervisor.engine.tasks import Tasks

SECRET = b"canary-5e77a1c0"
STARS = b"*" * len(SECRET)
MOST_READS = 10_000


def scrub(files: RunLayout, *values: bytes) -> RunScrubbing:
    return RunScrubbing("bot", files, KnownSecrets(*(value.decode() for value in values)), Tasks())


def append(files: RunLayout, data: bytes, number: int = 1, stream: str = "out") -> None:
    with files.segment(stream, number).open("ab") as log:
        log.write(data)


def content(files: RunLayout, stream: str = "out") -> bytes:
    return b"".join(path.read_bytes() for path in sorted(files.root.glob(f"{stream}-*.log")))


def readable(guard: RunScrubbing, stream: str = "out", limit: int = 7) -> bytes:
    """Read like every reader does: whether there is a next segment is asked before this one is read."""
    segments, at, found = guard.segments(stream), Place(), b""
    for _ in range(MOST_READS):
        over = segments.exists(at.segment + 1)
        data = segments.read(at, limit)
        if data:
            found += data
            at = Place(at.segment, at.offset + len(data))
        elif over:
            at = Place(at.segment + 1, 0)
        else:
            return found
    raise AssertionError("a reader that never comes to an end")


@pytest.mark.parametrize("stream", ["out", "err"])
def test_a_secret_is_overwritten_in_the_file_and_what_is_around_it_is_not(
    files: RunLayout, stream: str
) -> None:
    append(files, b"before " + SECRET + b" after\n", stream=stream)
    guard = scrub(files, SECRET)

    assert b"before " + STARS + b" after\n" == readable(guard, stream)
    assert b"before " + STARS + b" after\n" == content(files, stream)


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_secret_that_comes_in_two_parts_is_seen_by_no_reader(files: RunLayout, cut: int) -> None:
    guard = scrub(files, SECRET)
    append(files, b"key: " + SECRET[:cut])

    first = readable(guard)
    append(files, SECRET[cut:] + b"\n")

    assert b"key: " == first
    assert b"key: " + STARS + b"\n" == readable(guard) == content(files)


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_secret_over_the_end_of_a_segment_is_overwritten_in_both(files: RunLayout, cut: int) -> None:
    guard = scrub(files, SECRET)
    append(files, b"a" + SECRET[:cut], 1)
    assert b"a" == readable(guard)

    append(files, SECRET[cut:] + b"z", 2)

    assert b"a" + STARS + b"z" == readable(guard) == content(files)


def test_a_secret_over_three_segments_is_overwritten_in_all(files: RunLayout) -> None:
    for number, part in enumerate((SECRET[:4], SECRET[4:7], SECRET[7:] + b"\n"), start=1):
        append(files, part, number)

    assert STARS + b"\n" == readable(scrub(files, SECRET)) == content(files)


def test_what_only_looked_like_the_beginning_of_one_is_read_once_that_is_clear(files: RunLayout) -> None:
    guard = scrub(files, SECRET)
    append(files, b"canary-")
    assert b"" == readable(guard)

    append(files, b"bird\n")

    assert b"canary-bird\n" == readable(guard) == content(files)


def test_at_the_end_of_a_run_nothing_is_held_back(files: RunLayout) -> None:
    guard = scrub(files, SECRET)
    append(files, b"the last words: canary-")

    guard.close()

    assert b"the last words: canary-" == readable(guard)


def test_secrets_that_overlap_leave_nothing_of_either(files: RunLayout) -> None:
    append(files, b"<12345678abcdefgh>")
    guard = scrub(files, b"12345678abcd", b"8abcdefgh")

    assert b"<****************>" == readable(guard)


def test_secrets_that_overlap_over_two_looks_leave_nothing_of_either(files: RunLayout) -> None:
    guard = scrub(files, b"12345678abcd", b"8abcdefgh")
    append(files, b"<12345678abcd")
    readable(guard)

    append(files, b"efgh>")

    assert b"<****************>" == readable(guard) == content(files)


def test_a_secret_that_is_known_later_is_taken_out_from_then_on(files: RunLayout) -> None:
    guard = scrub(files)
    append(files, SECRET + b"\n")
    readable(guard)
    guard.known.add([SECRET.decode()])

    append(files, SECRET + b"\n")

    assert SECRET + b"\n" + STARS + b"\n" == readable(guard)


def test_lines_last_lines_and_sizes_keep_to_what_may_be_read(files: RunLayout) -> None:
    append(files, b"one\ntwo " + SECRET[:5])
    guard = scrub(files, SECRET)
    segments = guard.segments("out")

    assert len(b"one\ntwo ") == segments.size(1)
    assert [1] == segments.numbers()
    assert ["one", "two "] == run_logs.last_lines(KnownRun(1, files, guard))
    assert [b"one"] == [line.data for line in Cursor(segments).lines(final=False)]


def test_a_segment_that_is_held_back_is_not_left_for_the_next(files: RunLayout) -> None:
    append(files, b"a\n" + SECRET[:5], 1)
    append(files, SECRET[5:10], 2)
    guard = scrub(files, SECRET)

    assert b"a\n" == readable(guard)
    assert [1] == guard.segments("out").numbers()
    assert 0 == guard.segments("out").size(2)


def test_a_segment_that_was_deleted_is_passed_over(files: RunLayout) -> None:
    append(files, b"gone" + SECRET[:8], 1)
    guard = scrub(files, SECRET)
    readable(guard)
    files.segment("out", 1).unlink()

    append(files, SECRET[8:] + b" " + SECRET + b"\n", 3)
    guard.close()

    assert SECRET[8:] + b" " + STARS + b"\n" == content(files)


def test_the_ledgers_reader_counts_usage_and_stops_where_a_secret_may_begin(files: RunLayout) -> None:
    usage = b'KTESIO_USAGE {"sequence": %d, "input_tokens": 1, "output_tokens": 2, "model": "%s"}\n'
    append(files, usage % (0, SECRET) + usage % (1, b"m") + SECRET[:9])
    guard = scrub(files, SECRET)
    reader = RunReader("i", "r")

    def fold(*, closed: bool = False) -> list[tuple[str, str | None]]:
        found = read_log(
            reader,
            lambda n: files.segment("out", n),
            clock=SystemClock(),
            closed=closed,
            bound=guard.bound("out"),
        )
        return [(event.key, event.model_answered) for folded in found for event in folded.events]

    assert [("0", STARS.decode()), ("1", "m")] == fold()
    append(files, SECRET[9:] + b"\n" + usage % (2, b"m"))
    assert [("2", "m")] == fold()
    guard.close()
    assert [] == fold(closed=True)
    assert SECRET not in content(files)


def test_a_reader_that_is_ahead_of_a_new_look_is_not_sent_back(files: RunLayout) -> None:
    """After a restart more may be known, and what is held back may begin before the position of the ledger."""
    append(files, b"a line\n" + SECRET[:6])
    guard = scrub(files, SECRET)
    reader = RunReader("i", "r")
    reader.feed(b"a line\n" + SECRET[:3], at_ns=0)

    found = list(
        read_log(reader, lambda n: files.segment("out", n), clock=SystemClock(), bound=guard.bound("out"))
    )

    assert [] == [note for folded in found for note in folded.notes]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_the_cuts_the_files_are_what_was_printed_with_stars(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    alphabet = st.sampled_from(b"ab")
    values = data.draw(
        st.lists(st.lists(alphabet, min_size=8, max_size=11).map(bytes), min_size=1, max_size=3)
    )
    pieces = st.one_of(st.lists(alphabet, max_size=12).map(bytes), st.sampled_from(values))
    printed = b"".join(data.draw(st.lists(pieces, max_size=12)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(printed)), max_size=6)))
    files = RunLayout(tmp_path_factory.mktemp("run"))
    guard, number, seen = scrub(files, *values), 1, 0

    for begin, end in zip([0, *cuts], [*cuts, len(printed)], strict=True):
        append(files, printed[begin:end], number)
        found = readable(guard)
        assert found == starred(printed, values)[: len(found)]  # never a byte that is taken back later
        assert len(found) >= seen
        seen = len(found)
        number += data.draw(st.integers(0, 1))
    guard.close()

    assert starred(printed, values) == readable(guard) == content(files)


def starred(printed: bytes, values: list[bytes]) -> bytes:
    """Say it again, the slow way."""
    hidden = {
        at + i
        for value in values
        for at in range(len(printed) - len(value) + 1)
        if printed[at : at + len(value)] == value
        for i in range(len(value))
    }
    return bytes(ord("*") if at in hidden else byte for at, byte in enumerate(printed))


def test_a_writer_and_readers_at_once_see_no_secret(files: RunLayout) -> None:
    chance = random.Random(20261)
    guard = scrub(files, SECRET)
    printed = b"".join(
        SECRET if chance.random() < 0.2 else chance.randbytes(20).hex().encode() for _ in range(400)
    )
    done, seen = threading.Event(), []

    def write() -> None:
        at, number = 0, 1
        while at < len(printed):
            step = chance.randint(1, 90)
            append(files, printed[at : at + step], number)
            at += step
            number += chance.random() < 0.1
        done.set()

    def read() -> None:
        while not done.is_set():
            seen.append(SECRET in readable(guard, limit=4096))

    threads = [threading.Thread(target=work) for work in (write, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    guard.close()

    assert printed.replace(SECRET, STARS) == readable(guard, limit=4096) == content(files)
    assert not any(seen)


def test_what_is_put_in_the_place_of_a_segment_is_not_followed(files: RunLayout, tmp_path: Path) -> None:
    """An agent runs under our uid: a link that it puts there must not have us write into a file elsewhere."""
    victim = tmp_path / "elsewhere"
    victim.write_bytes(SECRET)
    files.segment("out", 1).symlink_to(victim)

    guard = scrub(files, SECRET)
    guard.close()

    assert b"" == readable(guard)
    assert SECRET == victim.read_bytes()


def test_looking_for_secrets_keeps_up_with_an_agent_that_prints_much(files: RunLayout) -> None:
    """16 MiB, a second's worth of 1 GB a minute, in a fraction of a second of one processor."""
    import time

    append(files, (b"x" * 99 + b"\n") * 167_772)
    guard = scrub(files, *(f"secret-number-{number}".encode() for number in range(6)))

    began_s = time.thread_time()
    guard.close()

    assert time.thread_time() - began_s < 0.5
    assert scrubbing.PIECE_BYTES < 16 << 20


@pytest.mark.parametrize("secret", [b"aaaaaaaa", b"abababab", b"--------", b"abaababaab"])
def test_a_secret_that_lies_on_itself_costs_no_more_than_another(files: RunLayout, secret: bytes) -> None:
    append(files, secret * ((4 << 20) // len(secret)) + b"\n")
    guard = scrub(files, secret)
    begun_s = time.process_time()

    left = readable(guard, limit=1 << 17)

    assert time.process_time() - begun_s < 5
    assert {ord("*"), ord("\n")} == set(left)


@given(
    st.binary(max_size=60).map(lambda data: bytes(b"ab"[byte % 2] for byte in data)),
    st.lists(st.sampled_from([b"aa", b"aba", b"abab", b"bbb", b"aabaa", b"abba"]), min_size=1, unique=True),
)
def test_every_byte_of_every_place_is_found_and_no_other(window: bytes, values: list[bytes]) -> None:
    covered = {
        at + offset
        for value in values
        for at in range(len(window))
        if window.startswith(value, at)
        for offset in range(len(value))
    }

    spans = scrubbing._found(window, tuple(values))

    assert covered == {at for begin, end in spans for at in range(begin, end)}
    assert all(one[1] < two[0] for one, two in itertools.pairwise(spans))
