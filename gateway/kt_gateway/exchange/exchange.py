"""What one HTTP call to a model provider means: fed bytes and times, it says what to send, hold and record.

Sans-io: touches no socket, no clock, no file. Laws: nothing is raised into the stream (a fault of ours lets the bytes
through and is recorded as `meter_fault`); bytes out are bytes in, in order, minus the usage event that only we asked
for; `settle` is said exactly once, before the bytes that let an agent act as if finished.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.retry import LIMITED, RetryReader
from kt_gateway.decode.shape import Measured
from kt_gateway.decode.table import DIALECTS, UNKNOWN_FAMILY, dialect_of
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange import knowledge, record, request, unasked, verdict
from kt_gateway.exchange.answer import Answer, BodyFacts
from kt_gateway.exchange.outcome import Outcome
from kt_gateway.exchange.unreleased import Unreleased
from kt_ledger.values import Reason

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request's head as the agent sent it; `path` is the upstream's, without token and query."""

    method: str
    path: str
    query: str
    headers: Headers


@dataclass(frozen=True, slots=True)
class Passage:
    """What to do with bytes.

    Send `now` at once. When `settle` is True (exactly once an exchange), make `close_fields()` durable, then send
    `held`. Where the exchange does not end cleanly, `held` is never sent: it would complete the message.
    """

    now: bytes = b""
    held: bytes = b""
    settle: bool = False


NOTHING = Passage()


class Exchange:
    """One HTTP call: feed it what happens, send what it says, write what it records.

    Order of calls: `collected` or `request_passed`; `open_fields`; `sent`; `response_head`; `response_data` ...;
    `response_end`; or `failed` at any point. `close_fields` once `settle` was said. Where `again` is True then, the
    answer goes nowhere: the request is to be made once more as it came, by an exchange of its own.
    """

    collect_limit_bytes = 16 << 20
    """A longer request body is not collected: it passes and counts, and nothing is asked for."""

    def __init__(
        self,
        *,
        id: str,
        instance_id: str,
        run_id: str | None,
        head: RequestHead,
        started_at_ns: int,
        started_mono_ns: int,
        inject_usage: Callable[[str | None], bool] = lambda _model: True,
        dialects: tuple[Dialect, ...] = DIALECTS,
    ) -> None:
        self.id = id
        self.instance_id = instance_id
        self.run_id = run_id
        self.head = head
        self.started_at_ns = started_at_ns
        self.started_mono_ns = started_mono_ns
        self.faults = 0
        self.settled = False
        self.usage_asked_by_us = False
        self.asked = request.NOTHING_KNOWN
        self.request_bytes = 0
        self.response_bytes = 0
        self.status: int | None = None
        self.was_sent = False
        self.tally: Tally | None = None
        self._inject = inject_usage
        self._unreleased = Unreleased()
        self._blind = False  # after a fault nothing more is read
        self.dialect = dialect_of(head.method, head.path, dialects=dialects)
        self.answer: Answer | None = None
        self._sized = False
        self.failure: Reason | None = None
        self._header_request_id: str | None = None
        self._retry: RetryReader | None = None
        self._doubt: bytearray | None = None  # an answer that may refuse what only we asked for
        self._doubt_coding = ""
        self.again = False
        if self.dialect is not None:
            self.tally = Tally(self.dialect.shape, overlays=self.dialect.overlays)
            self.asked = request.from_path(self.dialect.asks, head.path)

    @property
    def metered(self) -> bool:
        """Whether the answer's usage can be read; then the provider is asked for `accept-encoding: identity`."""
        return self.dialect is not None

    @property
    def family(self) -> str:
        """The API family's name, "unknown" where there is none."""
        return self.dialect.family if self.dialect else UNKNOWN_FAMILY

    @property
    def wants_body(self) -> bool:
        """Whether the request body must be collected (up to `collect_limit_bytes`) before it is forwarded."""
        return self.dialect is not None

    @property
    def finish_seen(self) -> bool:
        """Whether a finish reason has passed: if the agent leaves now, usage may still follow within moments."""
        return self.tally is not None and self.tally.finished

    @property
    def stream(self) -> bool | None:
        """Whether the answer is an event stream; what the caller asked for before there is an answer."""
        return self.answer.stream if self.answer is not None else self.asked.stream

    @property
    def in_doubt(self) -> bool:
        """Whether not even the answer's head may go on yet; `again` says how it ended."""
        return self._doubt is not None

    @property
    def retry_at_ns(self) -> int | None:
        """When the provider, having refused for now, said that one may come back; wall clock."""
        return self._retry.at_ns() if self._retry is not None else None

    @property
    def ended_cleanly(self) -> bool:
        """Whether the agent may be given a proper end of message; otherwise its connection must be reset."""
        return self.settled and verdict.ends_cleanly(knowledge.facts(self))

    def collected(self, body: bytes) -> bytes:
        """Take the whole request body; return what to forward, the same object when unaltered."""
        self.request_bytes = len(body)
        if self.dialect is None:
            return body
        try:
            sent = request.Sent(
                body=body,
                content_type=_header(self.head.headers, b"content-type"),
                content_encoding=_header(self.head.headers, b"content-encoding"),
            )
            self.asked, forward = request.read(
                sent, self.dialect.asks, known=self.asked, inject=self._may_ask
            )
        except Exception:
            self.faults += 1
            return body
        self.usage_asked_by_us = forward is not body
        return forward

    def _may_ask(self, model: str | None) -> bool:
        """Whether a streamed answer of this model may be asked for its usage."""
        return self.dialect is not None and self.dialect.asks_for_usage and self._inject(model)

    def request_passed(self, count_bytes: int) -> None:
        """Note request bytes that went through without being collected."""
        self.request_bytes += count_bytes

    def sent(self) -> None:
        """Note that the first bytes have left for the provider."""
        self.was_sent = True

    def open_fields(self) -> dict[str, Any]:
        """Return the payload of the journal's `open` record."""
        return record.open_fields(self)

    def response_head(self, *, status: int, headers: Headers, mono_ns: int) -> None:
        """Take the final response head; 1xx never come here."""
        self.status = status
        names = {name.lower() for name, _ in headers}
        self._sized = b"content-length" in names and b"transfer-encoding" not in names
        self._header_request_id = _header(headers, b"x-request-id")[:200] or None
        if status in LIMITED:
            self._retry = RetryReader(headers, at_ns=self.started_at_ns + mono_ns - self.started_mono_ns)
        if self.usage_asked_by_us and status in unasked.STATUSES:
            self._doubt, self._doubt_coding = bytearray(), _header(headers, b"content-encoding")
        if self.dialect is None or self.tally is None:
            return
        try:
            facts = BodyFacts(
                content_type=_media_type(headers), content_encoding=_header(headers, b"content-encoding")
            )
            self.answer = Answer(self.dialect, self.tally, facts, withhold_usage=self.usage_asked_by_us)
        except Exception:
            self.faults += 1

    def response_data(self, data: bytes, *, last: bool, mono_ns: int) -> Passage:
        """Take de-chunked body bytes; `last` says that these are known to be the final ones."""
        self.response_bytes += len(data)
        if self._retry is not None:
            self._retry.data(data)
        if self._doubt is not None:
            return self._consider(data, last=last, mono_ns=mono_ns)
        return self._read(data, last=last, mono_ns=mono_ns)

    def _consider(self, data: bytes, *, last: bool, mono_ns: int) -> Passage:
        """Hold an answer until it shows whether it refuses the option that we added; such a one goes nowhere."""
        assert self._doubt is not None
        self._doubt += data
        if not last and len(self._doubt) <= unasked.BODY_LIMIT_BYTES:
            return NOTHING
        whole, self._doubt = bytes(self._doubt), None
        if last and unasked.names_the_option(whole, content_encoding=self._doubt_coding):
            self.again = True
            self._finish(mono_ns, proper=True)
            return Passage(settle=True)
        return self._read(whole, last=last, mono_ns=mono_ns)

    def _read(self, data: bytes, *, last: bool, mono_ns: int) -> Passage:
        if self.settled:
            return Passage(data)
        outcome = self._guarded(data, lambda answer: answer.data(data, mono_ns=mono_ns))
        if outcome.terminal:
            self.settled = True
            return Passage(outcome.now, outcome.held, settle=True)
        if not last:
            return Passage(outcome.now)
        now = outcome.now + self._finish(mono_ns, proper=True)
        if self.ended_cleanly:
            return Passage(b"", now, settle=True)
        if self._sized:
            return Passage(now[:-1], now[-1:], settle=True)
        return Passage(now, settle=True)

    def response_end(self, *, mono_ns: int) -> Passage:
        """Take the proper end of the message."""
        if self.settled:
            return NOTHING
        if self._doubt is not None:
            return self._consider(b"", last=True, mono_ns=mono_ns)
        rest = self._finish(mono_ns, proper=True)
        return Passage(b"", rest, settle=True) if self.ended_cleanly else Passage(rest, settle=True)

    def failed(self, reason: Reason, *, mono_ns: int) -> Passage:
        """Take the news that nothing more will come, and why."""
        self.failure = self.failure or reason
        if self.settled:
            return NOTHING
        kept, self._doubt = bytes(self._doubt or b""), None
        return Passage(kept + self._finish(mono_ns, proper=False), settle=True)

    def _finish(self, mono_ns: int, *, proper: bool) -> bytes:
        self.settled = True
        ended = self._guarded(b"", lambda answer: Outcome(answer.end(mono_ns=mono_ns, proper=proper)))
        return ended.now + ended.held

    def _guarded(self, data: bytes, step: Callable[[Answer], Outcome]) -> Outcome:
        """Run a step of the meter; where it fails, hand over all that it was given and meter no more."""
        answer = self.answer
        if answer is None or self._blind:
            return Outcome(data)
        try:
            outcome = step(answer)
            kept_bytes = answer.kept_bytes
        except Exception:
            self.faults += 1
            self._blind = True
            return Outcome(self._unreleased.last() + data)
        self._unreleased.note(data, kept_bytes)
        return outcome

    @property
    def measured(self) -> Measured | None:
        """What counts of this exchange, so far."""
        return knowledge.measured(self)

    def close_fields(self, *, at_ns: int, mono_ns: int) -> dict[str, Any]:
        """Return the payload of the `close` record (of a `local` one where nothing was sent); under 64 KiB."""
        judged = verdict.judge(knowledge.facts(self))
        try:
            found = record.found(self, header_request_id=self._header_request_id)
        except Exception:
            self.faults += 1
            found, judged = {}, verdict.FAULTY
        return record.close_fields(self, judged, found, at_ns=at_ns, mono_ns=mono_ns)


def _header(headers: Headers, name: bytes) -> str:
    """Return a header's values joined with commas (RFC 9110 section 5.3), empty where it is absent."""
    return ",".join(value.decode("latin-1").strip() for key, value in headers if key.lower() == name)


def _media_type(headers: Headers) -> str:
    return _header(headers, b"content-type").partition(";")[0].strip().lower()
