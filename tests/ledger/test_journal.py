import json
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kt_ledger import journal
from kt_ledger.journal import Damage, NewerMajor, Record

FRAMES = [
    journal.frame(journal.HEADER, {"incarnation": "g1"}),
    journal.frame(journal.OPEN, {"x": "1", "path": "/KTJ1/KTJ2\u0000", "model": "é"}),
    journal.frame(journal.SENT, {"x": "1"}),
    journal.frame(journal.CLOSE, {"x": "1", "counts": {"input": 1}, "odd": "\ud800"}),
    journal.frame(journal.NOTE, {"kind": "probe", "count": 3}),
]
SEGMENT = b"".join(FRAMES)
RECORDS = list(journal.read(SEGMENT))
STARTS = [0, *(record.end for record in RECORDS)]


def records(data: bytes, *, final: bool) -> list[Record]:
    return [found for found in journal.read(data, final=final) if isinstance(found, Record)]


def craft(payload: bytes, type_: int = journal.NOTE, magic: bytes = b"KTJ1", minor: int = 0) -> bytes:
    crc = zlib.crc32(payload, zlib.crc32(bytes([type_, minor])))
    return struct.pack("<4sBBHII", magic, type_, minor, 0, len(payload), crc) + payload


def test_what_was_framed_is_read_back_with_its_place() -> None:
    assert [1, 2, 3, 4, 6] == [record.type for record in RECORDS]
    assert {"x": "1", "path": "/KTJ1/KTJ2\u0000", "model": "é"} == RECORDS[1].fields
    assert len(SEGMENT) == RECORDS[-1].end
    assert STARTS[:-1] == [record.offset for record in RECORDS]


def test_offsets_count_from_the_segments_start() -> None:
    (record,) = journal.read(FRAMES[2], base=1000)

    assert (1000, 1000 + len(FRAMES[2])) == (record.offset, record.end)


@pytest.mark.parametrize("cut", range(len(SEGMENT)))
def test_a_live_segment_cut_anywhere_gives_whole_records_and_waits(cut: int) -> None:
    found = list(journal.read(SEGMENT[:cut]))

    assert [record for record in RECORDS if record.end <= cut] == found


@pytest.mark.parametrize("cut", range(len(SEGMENT)))
def test_a_dead_segment_cut_anywhere_ends_in_damage_up_to_the_cut(cut: int) -> None:
    found = list(journal.read(SEGMENT[:cut], final=True))

    whole = [record for record in RECORDS if record.end <= cut]
    assert whole == found[: len(whole)]
    assert ([] if cut in STARTS else [Damage]) == [type(one) for one in found[len(whole) :]]


@pytest.mark.parametrize("final", [True, False])
@given(at=st.integers(0, len(SEGMENT) - 1), bit=st.integers(0, 7))
@settings(max_examples=400)
def test_any_flipped_bit_costs_one_record_and_never_makes_one(at: int, bit: int, final: bool) -> None:
    broken = bytearray(SEGMENT)
    broken[at] ^= 1 << bit

    found = records(bytes(broken), final=final)

    hit = next(record for record in RECORDS if record.offset <= at < record.end)
    assert [record for record in RECORDS if record is not hit] == found or (
        # The two reserved bytes of a head carry nothing yet.
        found == RECORDS
    )


@given(st.lists(st.tuples(st.integers(0, len(SEGMENT) - 1), st.integers(0, 255)), max_size=30))
def test_whatever_is_overwritten_only_written_records_are_read(changes: list[tuple[int, int]]) -> None:
    broken = bytearray(SEGMENT)
    for at, byte in changes:
        broken[at] = byte

    for final in (True, False):
        assert all(record in RECORDS for record in records(bytes(broken), final=final))


@given(st.binary(max_size=300), st.booleans())
def test_garbage_never_raises_and_never_stalls_a_dead_segment(garbage: bytes, then_frames: bool) -> None:
    data = garbage + (SEGMENT if then_frames else b"")

    found = list(journal.read(data, final=True))

    places = [(one.offset, one.end) for one in found if not isinstance(one, NewerMajor)]
    assert all(start < end for start, end in places)
    if then_frames and garbage.rstrip(b"\0"):
        assert RECORDS[-1].fields == records(data, final=True)[-1].fields


@given(st.lists(st.integers(0, len(SEGMENT))), st.integers(0, len(SEGMENT) - 1))
def test_records_do_not_depend_on_how_much_was_there_at_a_time(cuts: list[int], flip: int) -> None:
    broken = bytearray(SEGMENT)
    broken[flip] ^= 0x10
    data = bytes(broken)
    whole = records(data, final=True)
    found: list[Record] = []
    at = 0

    for upto in [*sorted(cuts), len(data)]:
        for one in journal.read(data[at:upto], base=at, final=upto == len(data)):
            if isinstance(one, NewerMajor):
                break
            found += [one] if isinstance(one, Record) else []
            at = one.end

    assert whole == found


def test_preallocated_space_is_the_end_of_what_was_written() -> None:
    for final in (True, False):
        assert RECORDS == list(journal.read(SEGMENT + bytes(5000), final=final))


def test_zeros_between_frames_are_damage() -> None:
    data = FRAMES[0] + bytes(64) + FRAMES[1]

    first, hole, second = journal.read(data)

    assert (Record, Damage, Record) == (type(first), type(hole), type(second))
    assert 64 == hole.end - hole.offset


@pytest.mark.parametrize("torn", [FRAMES[3][:30] + bytes(200), FRAMES[3][:9] + bytes(200)])
def test_a_write_under_way_into_preallocated_space_is_no_damage(torn: bytes) -> None:
    assert RECORDS[:1] == list(journal.read(FRAMES[0] + torn))

    found = list(journal.read(FRAMES[0] + torn, final=True))

    assert [Record, Damage] == [type(one) for one in found]


def test_a_later_major_version_stops_the_reader_and_a_flipped_digit_does_not() -> None:
    newer = craft(b"{}", magic=b"KTJ2")

    assert [*RECORDS, NewerMajor(len(SEGMENT), b"KTJ2")] == list(journal.read(SEGMENT + newer + newer))
    assert [Damage, Record] == [type(one) for one in journal.read(newer + FRAMES[0])]


@pytest.mark.parametrize(
    "payload", [b"[1]", b"{", b"", b"\xff\xfe", b"{} {}", b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}"]
)
def test_a_payload_that_checks_but_makes_no_sense_is_damage_by_itself(payload: bytes) -> None:
    data = craft(payload) + FRAMES[2]

    found = list(journal.read(data))

    assert [Damage, Record] == [type(one) for one in found]
    assert len(craft(payload)) == found[0].end


def test_a_later_minor_version_and_unknown_types_are_read() -> None:
    (record,) = journal.read(craft(json.dumps({"new": 1}).encode(), type_=99, minor=7))

    assert (99, {"new": 1}) == (record.type, record.fields)


def test_more_garbage_than_any_frame_is_damage_even_while_the_segment_is_written() -> None:
    garbage = b"KTJ1" + b"\x01" * (journal.MAX_PAYLOAD_BYTES + 64)

    (damage,) = journal.read(garbage)

    assert isinstance(damage, Damage)
    assert 0 < len(garbage) - damage.end < 4
