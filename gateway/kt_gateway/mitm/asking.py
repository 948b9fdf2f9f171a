"""The first half of a lane: requests off the client's bytes, through the door, and on to the provider.

Bodies that the exchange wants to see are collected, others pass as they come; refused ones are read away.
"""

from mitmproxy.proxy import commands, layer

from kt_gateway.exchange.exchange import RequestHead
from kt_gateway.http1 import answers, door, framing, head, rewrite
from kt_gateway.mitm.call import Call
from kt_gateway.mitm.judging import Judging
from kt_gateway.mitm.launching import Launching, framing_of
from kt_gateway.mitm.line import Commands, Line
from kt_ledger.values import Reason

INBOX_LIMIT_BYTES = 64 << 10
"""Pipelined bytes that we keep while an exchange is under way; beyond it the client is not read."""
DISCARD_LIMIT_BYTES = 1 << 20
"""How much of a refused request's body is read away to keep the connection."""


class Asking:
    """What the client sends."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._judging = Judging(line)
        self._launching = Launching(line, self._judging)
        self._inbox = bytearray()
        self._body: framing.Body | None = None  # the request body that is being read
        self._discarded = 0
        self._head_since_ns: int | None = None  # when the head that is waited for began
        self._head_timer: commands.RequestWakeup | None = None

    @property
    def body_is_open(self) -> bool:
        """Whether the client has not finished its request."""
        return self._body is not None

    @property
    def has_whole_request(self) -> bool:
        """Whether a request is under way whose sender owes nothing more."""
        return self._line.call is not None and self._body is None

    def feed(self, data: bytes) -> Commands:
        """Take bytes of the client."""
        self._inbox += data
        yield from self.serve()

    def serve(self) -> Commands:
        """Do what the bytes in hand allow."""
        line = self._line
        while self._inbox and not line.closing:
            if self._body is not None:
                yield from self._read_body()
            elif line.call is not None or not (yield from self._read_head()):
                break
        if len(self._inbox) > INBOX_LIMIT_BYTES and line.call is not None:
            line.wire.hold(line.client)
        if self._inbox and line.call is None and self._body is None and not line.closing:
            yield from self._time_head()
        else:
            self._head_since_ns = None

    def _time_head(self) -> Commands:
        """Begin to wait for the rest of a head; one timer a connection, however many heads come in pieces."""
        if self._head_since_ns is None:
            self._head_since_ns = self._line.meter.now()[1]
        if self._head_timer is None:
            self._head_timer = commands.RequestWakeup(self._line.meter.head_timeout_s)
            yield self._head_timer

    def woken(self, timer: commands.RequestWakeup) -> Commands:
        """See whether the head that is waited for has taken too long."""
        line = self._line
        if timer is not self._head_timer:
            return
        self._head_timer = None
        if self._head_since_ns is None or line.closing:
            return
        now_ns = line.meter.now()[1]
        if line.meter.door.hold_s is not None:
            self._head_since_ns = (
                now_ns  # its sender may be frozen in the middle of it: that is no fault of its own
            )
        left_s = line.meter.head_timeout_s - (now_ns - self._head_since_ns) / 1e9
        if left_s > 0:
            self._head_timer = commands.RequestWakeup(left_s)
            yield self._head_timer
            return
        why = f"got no whole request head within {line.meter.head_timeout_s:g} s"
        yield from self._refuse_bytes(head.BadMessage(408, why))

    # -- heads -------------------------------------------------------------------------------------------------
    def _read_head(self) -> layer.CommandGenerator[bool]:
        line = self._line
        try:
            start = head.take_request(self._inbox)
            if start is None:
                return False
            body = framing.of_request(start)
        except head.BadMessage as bad:
            yield from self._refuse_bytes(bad)
            return False
        judged = line.meter.door.judge(start)
        if isinstance(judged, door.Refusal):
            yield from self._refuse(start, body, judged)
        else:
            yield from self._admit(start, body, judged)
        return True

    def _refuse_bytes(self, bad: head.BadMessage) -> Commands:
        line = self._line
        asked = RequestHead(method="", path="", query="", headers=())
        line.meter.record_local(None, asked, bad.status, Reason.BAD_REQUEST)
        answer = answers.error(bad.status, "bad_request", bad.why)
        yield from line.tell(answer, close=True, head_only=False)
        yield from line.leave()

    def _refuse(self, start: head.RequestStart, body: framing.Body | None, refusal: door.Refusal) -> Commands:
        line = self._line
        if refusal.counted is not None:
            line.meter.count(refusal.counted, refusal.run_id)
        if refusal.reason is not None:
            asked = _asked(start, refusal.path, b"")
            line.meter.record_local(refusal.run_id, asked, refusal.answer.status, refusal.reason)
        # A client that waits for a 100 will not send the body that it announced: no next request could be found.
        close = refusal.close or _ends_connection(start) or bool(head.values(start.headers, b"expect"))
        yield from self._answer_here(start, body, refusal.answer, close=close)

    def _answer_here(
        self, start: head.RequestStart, body: framing.Body | None, answer: answers.Answer, *, close: bool
    ) -> Commands:
        line = self._line
        yield from line.tell(answer, close=close, head_only=start.method == b"HEAD")
        if close:
            yield from line.leave()
        elif body is not None and not body.done:
            self._body, self._discarded = body, 0

    def _admit(self, start: head.RequestStart, body: framing.Body | None, entry: door.Entry) -> Commands:
        line = self._line
        exchange = line.meter.begin(entry.run_id, _asked(start, entry.path, entry.query))
        close = _ends_connection(start) or line.meter.draining
        call = line.call = Call(
            start=start, entry=entry, door=line.meter.door, exchange=exchange, close=close
        )
        line.meter.in_flight += 1
        refused = yield from self._judging.again(call)
        if refused is not None:
            close = call.close or bool(head.values(start.headers, b"expect"))
            yield from self._answer_here(start, body, refused, close=close)
        elif line.call is call:
            yield from self._take_in(call, body)

    def _take_in(self, call: Call, body: framing.Body | None) -> Commands:
        line, exchange = self._line, call.exchange
        has_body = body is not None and not body.done
        if exchange.wants_body and _fits(body, exchange.collect_limit_bytes):
            call.collected = bytearray()
            if not has_body:
                yield from self._launch_collected()
                return
            self._body = body
            if call.expects_continue() and not self._inbox:
                yield commands.SendData(line.client, answers.CONTINUE)
            return
        self._body = body if has_body else None
        yield from self._launch(b"", framing_of(body, call))

    # -- bodies ------------------------------------------------------------------------------------------------
    def _read_body(self) -> Commands:
        assert self._body is not None
        data = bytes(self._inbox)
        self._inbox.clear()
        try:
            piece, rest = self._body.feed(data)
        except head.BadMessage as bad:
            yield from self._break_off(bad)
            return
        self._inbox += rest
        body = self._body
        if body.done:
            self._body = None
        call = self._line.call
        if call is None or (call.collected is None and not call.launched):
            yield from self._discard(len(piece))
        elif call.collected is not None:
            yield from self._collect(call, piece, body)
        else:
            yield from self._pass_on(call, piece, body)

    def _collect(self, call: Call, piece: bytes, body: framing.Body) -> Commands:
        assert call.collected is not None
        call.collected += piece
        if len(call.collected) > call.exchange.collect_limit_bytes:
            first, call.collected = bytes(call.collected), None
            yield from self._launch(first, framing_of(framing.Chunked(), call))
            if body.done and self._line.call is call and call.launched:
                yield from self._pass_on(call, b"", body)
        elif body.done:
            yield from self._launch_collected()

    def _pass_on(self, call: Call, piece: bytes, body: framing.Body) -> Commands:
        line = self._line
        if line.upstream is None:
            return
        call.exchange.request_passed(len(piece))
        data = framing.chunk(piece) if call.request_chunked else piece
        if body.done and call.request_chunked:
            data += framing.last_chunk(body.trailers)
        if data:
            yield commands.SendData(line.upstream, data)

    def _discard(self, count_bytes: int) -> Commands:
        self._discarded += count_bytes
        if self._discarded > DISCARD_LIMIT_BYTES:
            yield from self._line.leave()

    def _break_off(self, bad: head.BadMessage) -> Commands:
        """End a request whose body is malformed: what was forwarded of it is not completed."""
        line = self._line
        self._body = None
        call = line.call
        if call is None:
            yield from line.leave()
            return
        answered = call.answered
        yield from self._judging.end(call, Reason.BAD_REQUEST, status=None)
        if answered:
            yield from line.reset()
            return
        yield from line.tell(answers.error(bad.status, "bad_request", bad.why), close=True, head_only=False)
        yield from line.leave()

    def _launch_collected(self) -> Commands:
        call = self._line.call
        assert call is not None and call.collected is not None
        came = bytes(call.collected)
        body = call.exchange.collected(came)
        call.collected = None
        call.as_it_came = came if body is not came else None
        empty = not body and not head.values(call.start.headers, b"content-length")
        yield from self._launch(body, b"" if empty else b"content-length: %d\r\n" % len(body))

    def _launch(self, first: bytes, framed_as: bytes) -> Commands:
        """Let the request leave; where it does not, answer in the provider's place."""
        call = self._line.call
        assert call is not None
        answer = yield from self._launching.launch(call, first, framed_as)
        if answer is not None:
            yield from self._answer_here(call.start, self._body, answer, close=call.close)

    def once_more(self, first: Call) -> Commands:
        """Make a request again as it came, as a call of its own: judged, recorded and counted like any other."""
        line = self._line
        body, entry = first.as_it_came, first.entry
        if body is None or line.closing:
            yield from line.reset()
            return
        asked = _asked(first.start, entry.path, entry.query)
        exchange = line.meter.begin(entry.run_id, asked)
        call = line.call = Call(
            start=first.start, entry=entry, door=line.meter.door, exchange=exchange, close=first.close
        )
        line.meter.in_flight += 1
        call.collected = bytearray(body)
        yield from self._launch_collected()

    def client_left(self) -> Commands:
        """Record a request whose sender left before it was complete."""
        call = self._line.call
        if call is not None and not call.launched:
            yield from self._judging.end(call, Reason.CLIENT_GONE_BEFORE_SEND, status=None)


def _asked(start: head.RequestStart, path: bytes, query: bytes) -> RequestHead:
    method, path_, query_ = start.method.decode("latin-1"), path.decode("latin-1"), query.decode("latin-1")
    return RequestHead(method=method, path=path_, query=query_, headers=start.headers)


def _ends_connection(start: head.RequestStart) -> bool:
    # HTTP/1.0 clients are not kept: their keep-alive was never specified for proxies (RFC 9112 appendix C.2.2).
    return start.minor == 0 or b"close" in rewrite.connection_options(start.headers)


def _fits(body: framing.Body | None, limit_bytes: int) -> bool:
    return not isinstance(body, framing.Sized) or body.left <= limit_bytes
