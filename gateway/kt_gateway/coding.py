"""Content codings undone for the meter's eyes: gzip, deflate (zlib and raw), br, zstd, also one on top of another.

Laws: pieces handed out are bounded, whatever is fed; a body that grows beyond all reason is given up (`TooMuch`);
damage is `Undecodable`. The bytes that the agent gets never pass through here.
Source: RFC 9110 section 8.4.1 (codings), RFC 1951/1950/1952, RFC 7932, RFC 8878 and 9659 (zstd windows up to 8 MB).
"""

import zlib
from collections.abc import Iterator
from typing import Protocol

import brotli
import zstandard

PIECE_BYTES = 64 << 10
GRACE_BYTES = 5 << 20
"""Decoded output that is always allowed."""

RATIO = 100
"""Decoded bytes that a coded byte may become beyond the grace. Repetitive JSON reaches about 100, deflate can 1032."""

_ZSTD_SLICE_BYTES = 128  # a 4-byte RLE block becomes 128 KiB, so one slice gives at most 4 MiB
_ZSTD_WINDOW_BYTES = 8 << 20
_GZIP_MAGIC = b"\x1f\x8b"


class Undecodable(Exception):
    """The body does not follow its content coding, or the coding is unknown."""


class TooMuch(Exception):
    """The body decodes to more than any honest answer would."""


class Decoder(Protocol):
    """Undoes one coding, incrementally."""

    @property
    def complete(self) -> bool:
        """Whether the coded stream's own end was seen."""
        ...

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` decodes to, in bounded pieces; raises Undecodable."""
        ...


class _Zlib:
    """gzip with any number of members, or deflate in either wrapping."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._stream: zlib._Decompress | None = None
        self._head = b""
        self.complete = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream is None:
                data = self._open(data)
                if self._stream is None:
                    return
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise Undecodable(str(error)) from error
            if piece:
                yield piece
            data = self._stream.unconsumed_tail
            if self._stream.eof:
                data = self._stream.unused_data
                self.complete = True
                self._stream = None
            elif not data and len(piece) == PIECE_BYTES:
                yield from self._drain()

    def _drain(self) -> Iterator[bytes]:
        # Input is used up but the window may still hold output beyond the piece.
        while self._stream is not None and (piece := self._stream.decompress(b"", PIECE_BYTES)):
            yield piece

    def _open(self, data: bytes) -> bytes:
        data = self._head + data
        if len(data) < 2 and not self.complete:
            self._head = data
            return b""
        self._head = b""
        if self.complete and not (self._gzip and data.startswith(_GZIP_MAGIC[: len(data)])):
            return b""  # padding behind the last member is ignored, as gzip(1) does
        if self.complete and len(data) < 2:
            self._head = data
            return b""
        self.complete = False
        self._stream = zlib.decompressobj(31 if self._gzip else _deflate_bits(data))
        return data


def _deflate_bits(head: bytes) -> int:
    # RFC 9110 8.4.1.2: "deflate" is the zlib wrapping, but some senders leave it off.
    wrapped = head[0] & 0x0F == 8 and (head[0] << 8 | head[1]) % 31 == 0
    return 15 if wrapped else -15


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    @property
    def complete(self) -> bool:
        try:
            return bool(self._stream.is_finished())
        except brotli.error:
            return False  # it does not answer any more once it has seen damage

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self.complete:
            return
        try:
            piece = self._stream.process(data, output_buffer_limit=PIECE_BYTES)
            while piece or not self._stream.can_accept_more_data():
                yield piece
                if self._stream.is_finished():
                    return
                piece = self._stream.process(b"", output_buffer_limit=PIECE_BYTES)
        except brotli.error as error:
            raise Undecodable(str(error)) from error


class _Zstd:
    def __init__(self) -> None:
        self._codec = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._stream: zstandard.ZstdDecompressionObj | None = None
        self.complete = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _ZSTD_SLICE_BYTES):
            yield from self._slice(data[at : at + _ZSTD_SLICE_BYTES])

    def _slice(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream is None:
                self._stream = self._codec.decompressobj()
                self.complete = False
            try:
                piece = self._stream.decompress(data)
            except zstandard.ZstdError as error:
                raise Undecodable(str(error)) from error
            for at in range(0, len(piece), PIECE_BYTES):
                yield piece[at : at + PIECE_BYTES]
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data
                self._stream = None
                self.complete = True


class Chain:
    """Undoes all codings of a body, outermost first, and keeps the account of how much came out of how little."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders
        self._taken_bytes = 0
        self._given_bytes = 0

    @property
    def complete(self) -> bool:
        """Whether every coding's own end was seen."""
        return all(decoder.complete for decoder in self._decoders)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the plain bytes of `data` in pieces of about 64 KiB.

        Raises:
            Undecodable: the data is damaged.
            TooMuch: more than `GRACE_BYTES` and more than `RATIO` times what was fed.
        """
        self._taken_bytes += len(data)
        return self._through(0, data)

    def _through(self, level: int, data: bytes) -> Iterator[bytes]:
        if level == len(self._decoders):
            yield data
            return
        for piece in self._decoders[level].feed(data):
            self._given_bytes += len(piece)
            if self._given_bytes > max(GRACE_BYTES, self._taken_bytes * RATIO):
                raise TooMuch(f"{self._taken_bytes} coded bytes became {self._given_bytes}")
            yield from self._through(level + 1, piece)


def _known(name: str) -> Decoder:
    if name in ("gzip", "x-gzip"):
        return _Zlib(gzip=True)
    if name == "deflate":
        return _Zlib(gzip=False)
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _Zstd()
    raise Undecodable(f"unknown content coding {name[:40]!r}")


MAX_CODINGS = 4
"""More codings than this on one body are nobody's honest answer."""


def chain(content_encoding: str) -> Chain | None:
    """Return what undoes a Content-Encoding header's value, None where there is nothing to undo.

    Raises:
        Undecodable: an unknown coding, or too many of them.
    """
    names = [
        name for word in content_encoding.split(",") if (name := word.strip().lower()) not in ("", "identity")
    ]
    if len(names) > MAX_CODINGS:
        raise Undecodable(f"{len(names)} content codings on one body")
    return Chain([_known(name) for name in reversed(names)]) if names else None


def whole(data: bytes, *, content_encoding: str, limit_bytes: int) -> bytes:
    """Return a complete body decoded; raises Undecodable, also when it is cut, and TooMuch above `limit_bytes`."""
    undo = chain(content_encoding)
    if undo is None:
        return data
    plain = bytearray()
    for piece in undo.feed(data):
        plain += piece
        if len(plain) > limit_bytes:
            raise TooMuch(f"more than {limit_bytes} bytes")
    if not undo.complete:
        raise Undecodable("the body ends before its coding does")
    return bytes(plain)
