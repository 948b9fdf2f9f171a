"""One recorded-shape answer of a provider: what the agent asks, the exact bytes of the answer, what the meter must say.

A case is a folder with a `case.toml` and body files; the format is described in `fixtures/README.md`. This file reads
one and turns it into wire bytes with pauses. Standard library only, except that `br` and `zstd` answers need the
packages that can write them. Laws: a key that the format does not know is refused, so that a typo is not a silent
default; body files are always plain, the encoding is done here.
"""

import tomllib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

DECLARED_SURPLUS_BYTES = 1000
"""How many bytes more than it sends a sized answer promises when it does not end cleanly."""


class CaseInvalid(Exception):
    """A case folder does not follow `fixtures/README.md`; the message names the file, what was got and wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the agent sends. `body` is text, normally JSON."""

    method: str = "POST"
    path: str = "/v1/chat/completions"
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What the provider answers. `body` is the plain content; see `fixtures/README.md` for the words."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    framing: str = "chunked"  # "sized" | "chunked" | "close"
    encoding: str = ""  # "" | "gzip" | "deflate" | "deflate-raw" | "br" | "zstd"
    body: bytes = b""
    pieces: str | int = "event"  # "event" | "whole" | a number of bytes
    pause_ms: int = 0  # before every piece of the body but the first
    end: str = "clean"  # "clean" | "fin" | "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What the ledger's row must say and what the agent must see."""

    completeness: str
    reason: str = ""
    model_answered: str = ""
    stream: bool | None = None
    status: int = 200
    agent: str = "same"  # "same" | "usage_event_withheld" | "reset"
    agent_body: bytes | None = None  # what the agent receives, where that differs from what was sent
    counts: dict[str, int] = field(default_factory=dict)
    service_tier: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes to write at once, after waiting `pause_ms`."""

    data: bytes
    pause_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One folder: request, response, expectation."""

    name: str
    synthetic: bool
    request: Request
    response: Response
    expect: Expect

    def body_pieces(self) -> list[bytes]:
        """Return the body as it is sent, encoded, one entry a write, without any framing."""
        encode = _encoder(self.response.encoding)
        plain = _cut(self.response.body, self.response.pieces)
        sent = [encode(piece, False) for piece in plain]
        sent.append(encode(b"", True) if self.response.end == "clean" else b"")
        tail = sent.pop()
        if tail and sent:
            sent[-1] += tail
        elif tail:
            sent.append(tail)
        return [piece for piece in sent if piece]

    def head(self) -> bytes:
        """Return the response's head with the framing headers that the case calls for."""
        phrase = HTTPStatus(self.response.status).phrase
        lines = [f"HTTP/1.1 {self.response.status} {phrase}"]
        lines += [f"{name}: {value}" for name, value in self.response.headers.items()]
        if self.response.encoding:
            lines.append(f"content-encoding: {self.response.encoding.removesuffix('-raw')}")
        lines.append(self._framing_header())
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _framing_header(self) -> str:
        if self.response.framing == "chunked":
            return "transfer-encoding: chunked"
        if self.response.framing == "close":
            return "connection: close"
        surplus = 0 if self.response.end == "clean" else DECLARED_SURPLUS_BYTES
        return f"content-length: {sum(map(len, self.body_pieces())) + surplus}"

    def pieces(self) -> Iterator[Piece]:
        """Yield the exact bytes of the answer, head first; then act on `hang_up`."""
        yield Piece(self.head())
        chunked = self.response.framing == "chunked"
        for number, data in enumerate(self.body_pieces()):
            framed = b"%x\r\n%b\r\n" % (len(data), data) if chunked else data
            yield Piece(framed, self.response.pause_ms if number else 0)
        if chunked and self.response.end == "clean":
            yield Piece(b"0\r\n\r\n")

    @property
    def hang_up(self) -> str:
        """What to do with the connection after the last piece: "keep", "fin" or "reset" (SO_LINGER 0)."""
        if self.response.end != "clean":
            return self.response.end
        return "fin" if self.response.framing == "close" else "keep"

    @property
    def agent_body(self) -> bytes:
        """The body bytes that the agent must receive, de-chunked; a prefix of them suffices where it sees a reset."""
        if self.expect.agent_body is not None:
            return self.expect.agent_body
        return b"".join(self.body_pieces())


def load(folder: Path) -> Case:
    """Read one case folder.

    Raises:
        CaseInvalid: `case.toml` lacks something, has an unknown key or an unknown word.
        OSError: a file cannot be read.
    """
    source = folder / "case.toml"
    with source.open("rb") as file:
        facts = tomllib.load(file)
    unknown = set(facts) - {"synthetic", "request", "response", "expect"}
    if unknown or "response" not in facts or "expect" not in facts:
        raise CaseInvalid(
            f"{source}: got {sorted(facts)}; wanted synthetic, [request], [response] and [expect]"
        )
    response = dict(facts["response"])
    response["body"] = (folder / response["body"]).read_bytes() if "body" in response else b""
    expect = dict(facts["expect"])
    if "agent_body" in expect:
        expect["agent_body"] = (folder / expect["agent_body"]).read_bytes()
    case = Case(
        name=f"{folder.parent.name}/{folder.name}",
        synthetic=facts.get("synthetic", False),
        request=_fill(Request, facts.get("request", {}), source),
        response=_fill(Response, response, source),
        expect=_fill(Expect, expect, source),
    )
    _check_words(case, source)
    return case


def load_all(root: Path) -> list[Case]:
    """Read every `<api>/<case>/case.toml` below `root` (the `fixtures/wire` folder), sorted by name."""
    return [load(path.parent) for path in sorted(root.glob("*/*/case.toml"))]


WORDS: dict[str, tuple[str, ...]] = {
    "framing": ("sized", "chunked", "close"),
    "encoding": ("", "gzip", "deflate", "deflate-raw", "br", "zstd"),
    "end": ("clean", "fin", "reset"),
}


def _check_words(case: Case, source: Path) -> None:
    for key, words in WORDS.items():
        if getattr(case.response, key) not in words:
            raise CaseInvalid(
                f"{source}: response.{key}: got {getattr(case.response, key)!r}; wanted {words}"
            )
    if case.response.pieces not in ("event", "whole") and not isinstance(case.response.pieces, int):
        raise CaseInvalid(
            f"{source}: response.pieces: got {case.response.pieces!r}; wanted event, whole or bytes"
        )
    if case.expect.agent not in ("same", "usage_event_withheld", "reset"):
        raise CaseInvalid(f"{source}: expect.agent: got {case.expect.agent!r}")


def _fill[T](kind: type[T], facts: dict[str, Any], source: Path) -> T:
    known = {f.name for f in fields(cast(Any, kind))}
    if set(facts) - known:
        raise CaseInvalid(
            f"{source}: unknown {sorted(set(facts) - known)}; {kind.__name__} has {sorted(known)}"
        )
    return kind(**facts)


def _cut(body: bytes, how: str | int) -> list[bytes]:
    if how == "whole":
        return [body]
    if isinstance(how, int):
        return [body[at : at + how] for at in range(0, len(body), how)]
    pieces, rest = [], body
    while rest:
        ends = [found + len(gap) for gap in (b"\n\n", b"\r\n\r\n") if (found := rest.find(gap)) >= 0]
        end = min(ends, default=len(rest))
        pieces.append(rest[:end])
        rest = rest[end:]
    return pieces


Encode = Callable[[bytes, bool], bytes]
"""Takes plain bytes and whether they are the last, gives encoded bytes that a reader can decode at once."""


def _encoder(name: str) -> Encode:
    if name == "":
        return lambda plain, _last: plain
    if name in ("gzip", "deflate", "deflate-raw"):
        return _zlib_encoder({"gzip": 31, "deflate": 15, "deflate-raw": -15}[name])
    return _brotli_encoder() if name == "br" else _zstd_encoder()


def _zlib_encoder(window_bits: int) -> Encode:
    stream = zlib.compressobj(9, zlib.DEFLATED, window_bits)

    def encode(plain: bytes, last: bool) -> bytes:
        return stream.compress(plain) + stream.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)

    return encode


def _brotli_encoder() -> Encode:
    import brotli

    stream = brotli.Compressor()

    def encode(plain: bytes, last: bool) -> bytes:
        return cast(bytes, stream.process(plain) + (stream.finish() if last else stream.flush()))

    return encode


def _zstd_encoder() -> Encode:
    import zstandard

    stream = zstandard.ZstdCompressor().compressobj()

    def encode(plain: bytes, last: bool) -> bytes:
        how = zstandard.COMPRESSOBJ_FLUSH_FINISH if last else zstandard.COMPRESSOBJ_FLUSH_BLOCK
        return stream.compress(plain) + stream.flush(how)

    return encode
