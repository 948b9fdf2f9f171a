import gzip
import random
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kt_gateway import coding

PLAIN = b'data: {"choices":[]}\n\n' * 400 + bytes(random.Random(5).randbytes(3000))


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()


CODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


def undone(data: bytes, name: str, size: int) -> tuple[bytes, bool]:
    undo = coding.chain(name)
    assert undo is not None
    plain = b"".join(piece for at in range(0, len(data), size) for piece in undo.feed(data[at : at + size]))
    return plain, undo.complete


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize("name", CODERS)
def test_each_coding_is_undone_however_it_is_cut(name: str, size: int) -> None:
    coded = CODERS[name](PLAIN)

    assert undone(coded, name, size) == (PLAIN, True)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_deflate_without_its_wrapping_is_undone(size: int) -> None:
    assert undone(raw_deflate(PLAIN), "deflate", size) == (PLAIN, True)


@pytest.mark.parametrize("size", [1, 3, 1 << 20])
def test_gzip_of_several_members_is_one_body(size: int) -> None:
    coded = b"".join(gzip.compress(PLAIN[at : at + 2000]) for at in range(0, len(PLAIN), 2000))

    assert undone(coded, "gzip", size) == (PLAIN, True)


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_zstd_of_several_frames_is_one_body(size: int) -> None:
    coded = zstandard.compress(PLAIN[:500]) + zstandard.compress(PLAIN[500:])

    assert undone(coded, "zstd", size) == (PLAIN, True)


@pytest.mark.parametrize("padding", [b"\0", b"\0" * 700, b"junk"])
def test_padding_behind_gzip_is_ignored(padding: bytes) -> None:
    assert undone(gzip.compress(PLAIN) + padding, "gzip", 50) == (PLAIN, True)


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_codings_on_top_of_each_other_are_undone_outermost_first(size: int) -> None:
    coded = brotli.compress(gzip.compress(zstandard.compress(PLAIN)))

    assert undone(coded, "zstd, gzip , identity, BR", size) == (PLAIN, True)


@pytest.mark.parametrize("name", ["", "identity", " identity ,identity"])
def test_no_coding_needs_no_undoing(name: str) -> None:
    assert coding.chain(name) is None
    assert coding.whole(PLAIN, content_encoding=name, limit_bytes=1) is PLAIN


@pytest.mark.parametrize("name", ["compress", "gzip, aws-chunked", "gzip,gzip,gzip,gzip,gzip"])
def test_an_unknown_coding_is_undecodable(name: str) -> None:
    with pytest.raises(coding.Undecodable):
        coding.chain(name)


@pytest.mark.parametrize("name", CODERS)
def test_damage_is_undecodable_or_incomplete(name: str) -> None:
    coded = bytearray(CODERS[name](PLAIN))
    coded[len(coded) // 2 :] = b"\xff" * 40

    with pytest.raises(coding.Undecodable):
        coding.whole(bytes(coded), content_encoding=name, limit_bytes=1 << 20)


@pytest.mark.parametrize("name", CODERS)
def test_a_cut_body_is_incomplete(name: str) -> None:
    coded = CODERS[name](PLAIN)[:-9]

    plain, complete = undone(coded, name, 100)

    assert not complete
    assert PLAIN.startswith(plain)


@pytest.mark.parametrize("name", CODERS)
def test_what_has_been_flushed_can_be_read_at_once(name: str) -> None:
    streams = {
        "br": (brotli.Compressor(), "process", lambda s: s.flush()),
        "zstd": (
            zstandard.ZstdCompressor().compressobj(),
            "compress",
            lambda s: s.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK),
        ),
        "deflate": (zlib.compressobj(), "compress", lambda s: s.flush(zlib.Z_SYNC_FLUSH)),
    }
    gzipped = (zlib.compressobj(6, zlib.DEFLATED, 31), "compress", lambda s: s.flush(zlib.Z_SYNC_FLUSH))
    stream, verb, flush = streams.get(name, gzipped)
    undo = coding.chain(name)
    assert undo is not None

    for event in (b"data: 1\n\n", b"data: 2\n\n"):
        coded = getattr(stream, verb)(event) + flush(stream)
        assert event == b"".join(undo.feed(coded))


@pytest.mark.parametrize("name", CODERS)
def test_a_bomb_is_given_up_in_bounded_pieces(name: str) -> None:
    bomb = CODERS[name](bytes(20 << 20))
    undo = coding.chain(name)
    assert undo is not None
    total = 0

    with pytest.raises(coding.TooMuch):
        for at in range(0, len(bomb), 65536):
            for piece in undo.feed(bomb[at : at + 65536]):
                assert len(piece) <= 2 * coding.PIECE_BYTES  # brotli's buffer may overshoot by its last block
                total += len(piece)

    assert total <= max(coding.GRACE_BYTES, len(bomb) * coding.RATIO) + 2 * coding.PIECE_BYTES


def test_a_bomb_in_a_bomb_is_given_up_as_well() -> None:
    bomb = gzip.compress(gzip.compress(bytes(100 << 20)))

    with pytest.raises(coding.TooMuch):
        coding.whole(bomb, content_encoding="gzip, gzip", limit_bytes=1 << 30)


def test_a_large_window_of_zstd_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    coded = stream.compress(random.Random(1).randbytes(1 << 20)) + stream.flush()

    with pytest.raises(coding.Undecodable):
        coding.whole(coded, content_encoding="zstd", limit_bytes=1 << 30)


def test_a_body_beyond_the_limit_is_too_much() -> None:
    with pytest.raises(coding.TooMuch):
        coding.whole(gzip.compress(bytes(2000)), content_encoding="gzip", limit_bytes=1999)


@given(st.binary(max_size=400), st.sampled_from(sorted(CODERS)), st.integers(1, 50))
def test_no_bytes_make_a_decoder_fail_otherwise_than_it_says(junk: bytes, name: str, size: int) -> None:
    undo = coding.chain(name)
    assert undo is not None

    try:
        for at in range(0, len(junk), size):
            list(undo.feed(junk[at : at + size]))
    except coding.Undecodable:
        pass


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_what_was_damaged_is_not_complete(name: str) -> None:
    chain = coding.chain(name)
    assert chain is not None

    with pytest.raises(coding.Undecodable):
        list(chain.feed(b"s" * 50))

    assert not chain.complete
