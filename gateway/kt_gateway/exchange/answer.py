"""An answer's body on its way: undone codings for the meter's eyes, and the reader that its first bytes call for.

The content type is a hint only: servers send event streams under other types, and JSON errors as event streams.
Laws as in `stream`: every byte taken is given back once, in order; `kept_bytes` is how much is still kept. A coded
answer passes whole: nothing is withheld from it, and the coded bytes that show the terminal event are held together.
"""

from dataclasses import dataclass

from kt_gateway import coding
from kt_gateway.decode.dialect import ARRAY, LINES, Dialect
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange import sse
from kt_gateway.exchange.array import ArrayStream
from kt_gateway.exchange.document import Document
from kt_gateway.exchange.lines import LineStream
from kt_gateway.exchange.outcome import Outcome, Reader
from kt_gateway.exchange.stream import EventStream

_SPACE = b" \t\r\n"
_FIELDS = (b"data:", b"event:", b"retry:", b"id:", b":")
_LINE_TYPES = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "application/stream+json",
    }
)
CODED_BACKLOG_BYTES = 64 << 10
"""How many coded bytes are kept while their content may be the beginning of the terminal event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFacts:
    """What the response head says about its body."""

    content_type: str
    content_encoding: str


class Answer:
    """Reads the body of one answer in a known dialect."""

    def __init__(self, dialect: Dialect, tally: Tally, facts: BodyFacts, *, withhold_usage: bool) -> None:
        self._dialect = dialect
        self._tally = tally
        self._content_type = facts.content_type
        self._coded = b""
        self._head = b""  # first bytes that do not yet show what they begin
        self._reader: Reader | None = None
        self._opaque = False
        self.undecodable = False
        self.too_large = False
        self._codings: coding.Chain | None = None
        try:
            self._codings = coding.chain(facts.content_encoding)
        except coding.Undecodable:
            self.undecodable = True
        self._withhold = withhold_usage and self._codings is None

    @property
    def stream(self) -> bool:
        """Whether the body is, or by its type would be, an event stream."""
        typed = self._content_type == "text/event-stream"
        if self._reader is None:
            return (typed or self._content_type in _LINE_TYPES) and not self._opaque
        return self._reader.streams or (typed and isinstance(self._reader, EventStream))

    @property
    def kept_bytes(self) -> int:
        """How many of the last bytes taken were not given back yet."""
        return len(self._coded) if self._codings is not None else self._plain_kept_bytes()

    def data(self, data: bytes, *, mono_ns: int) -> Outcome:
        """Take bytes of the body as they came."""
        if self.undecodable or self.too_large:
            return Outcome(data)
        if self._codings is not None:
            return self._undo(self._codings, data, mono_ns)
        return self._plain(data, mono_ns)

    def _undo(self, codings: coding.Chain, data: bytes, mono_ns: int) -> Outcome:
        kept = self._coded + data
        try:
            for piece in codings.feed(data):
                if not self._tally.done:
                    self._plain(piece, mono_ns)
        except coding.Undecodable:
            self.undecodable = True
        except coding.TooMuch:
            self.too_large = True
        self._coded = b""
        if self._tally.done:
            return Outcome(b"", kept, terminal=True)
        waits = not (self.undecodable or self.too_large) and self._plain_kept_bytes() > 0
        if waits and len(kept) <= CODED_BACKLOG_BYTES:
            self._coded = kept
            return Outcome(b"")
        return Outcome(kept)

    def _plain_kept_bytes(self) -> int:
        return self._reader.kept_bytes if self._reader is not None else len(self._head)

    def _plain(self, data: bytes, mono_ns: int) -> Outcome:
        if self._reader is not None:
            return self._reader.data(data, mono_ns=mono_ns)
        if self._opaque:
            return Outcome(data)
        self._head += data
        first = self._head.removeprefix(sse.BOM).lstrip(_SPACE)
        if not first and not sse.BOM.startswith(self._head):
            # White space keeps connections alive for minutes before an answer: it never waits.
            blank, self._head = self._head, b""
            return Outcome(blank)
        if not self._choose(first):
            return Outcome(b"")
        head, self._head = self._head, b""
        return self._reader.data(head, mono_ns=mono_ns) if self._reader is not None else Outcome(head)

    def _choose(self, first: bytes) -> bool:
        """Pick the reader for a body that begins like this; False where more bytes are needed."""
        if first[:1] in (b"{", b"["):
            self._reader = self._json(first)
        elif not first.startswith(_FIELDS) and any(begun.startswith(first) for begun in (*_FIELDS, sse.BOM)):
            return False
        elif first.startswith(_FIELDS) or self._content_type == "text/event-stream":
            self._reader = EventStream(self._dialect, self._tally, withhold_usage=self._withhold)
        elif self._content_type.endswith("json"):
            self._reader = Document(self._dialect, self._tally)
        else:
            self._opaque = True
        return True

    def _json(self, first: bytes) -> Reader:
        framings = self._dialect.framings
        if first[:1] == b"[" and ARRAY in framings:
            return ArrayStream(self._dialect, self._tally)
        if first[:1] == b"{" and LINES in framings:
            return LineStream(self._dialect, self._tally, typed=self._content_type in _LINE_TYPES)
        return Document(self._dialect, self._tally)

    def end(self, *, mono_ns: int, proper: bool) -> bytes:
        """Take the end of the body, proper or not; return what was still kept."""
        coded, self._coded = self._coded, b""
        rest = self._reader.end(mono_ns=mono_ns) if self._reader is not None else self._head
        self._head = b""
        if proper and not self.too_large:
            self._judge_wholeness()
        return coded if self._codings is not None else rest

    def _judge_wholeness(self) -> None:
        if self._codings is not None and not self._codings.complete and not self._tally.done:
            self.undecodable = True
        if self._reader is not None:
            self.undecodable = self.undecodable or not self._reader.readable
            self.too_large = self._reader.overlong
