"""How a request leaves: presence of the client, the open record, the connection, the request, the sent record.

In this order, always: what left is on record, what nobody waits for does not leave, and nothing leaves by rules that
have changed meanwhile.
"""

from mitmproxy.proxy import commands

from kt_gateway import failpoints
from kt_gateway.http1 import answers, framing, rewrite
from kt_gateway.mitm.call import Call
from kt_gateway.mitm.hooks import KtAdmitHook, Moment
from kt_gateway.mitm.judging import Judging, Refused
from kt_gateway.mitm.line import Commands, Line
from kt_ledger import journal
from kt_ledger.values import Reason

_JOURNAL_AWAY = "usage cannot be recorded (is the disk full?), so nothing may leave; see `kt engine status`"


class Launching:
    """Lets requests leave."""

    def __init__(self, line: Line, judging: Judging) -> None:
        self._line = line
        self._judging = judging

    def launch(self, call: Call, first: bytes, framed_as: bytes) -> Refused:
        """Let the request leave, or record why it did not.

        Args:
            call: the exchange; it is the line's.
            first: body bytes that are in hand.
            framed_as: the header lines that say how the body is framed.

        Returns:
            An answer to give in the provider's place; None when the request left, or the client has.
        """
        line = self._line
        if line.wire.is_gone(line.client):
            yield from self._judging.reset(call, Reason.CLIENT_GONE_BEFORE_SEND)
            return None
        while True:
            # Each of these may take its time; the last thing before the bytes leave is a look at the rules.
            refused = yield from self._judging.again(call)
            if refused is None and line.call is call:
                if not call.opened:
                    refused = yield from self._record_open(call)
                elif not line.is_connected():
                    refused = yield from self._connect(call)
                else:
                    break
            if refused is not None or line.call is not call:
                return refused
        yield from self._send(call, first, framed_as)
        return None

    def _record_open(self, call: Call) -> Refused:
        line = self._line
        if failpoints.ARMED:
            failpoints.ARMED.hit("before_open_record")
        while not line.meter.record(journal.OPEN, call.exchange.open_fields(), keep=False):
            moment = Moment(line.meter.instance_id)
            line.wire.hold(line.client)
            yield KtAdmitHook(moment)
            line.wire.go_on(line.client)
            if not moment.usable:
                answer = answers.final(call.entry.path, "journal_unavailable", _JOURNAL_AWAY)
                return (yield from self._judging.refuse(call, answer, Reason.JOURNAL_UNAVAILABLE))
        call.opened = True
        if failpoints.ARMED:
            failpoints.ARMED.hit("after_open_record")
        return None

    def _connect(self, call: Call) -> Refused:
        line = self._line
        if (yield from line.connect()) is not None:
            answer = answers.error(
                502, "upstream_unreachable", "the provider could not be reached; nothing was sent"
            )
            return (yield from self._judging.refuse(call, answer, Reason.UPSTREAM_UNREACHABLE))
        if line.wire.is_gone(line.client):
            yield from self._judging.reset(call, Reason.CLIENT_GONE_BEFORE_SEND)
        return None

    def _send(self, call: Call, first: bytes, framed_as: bytes) -> Commands:
        line = self._line
        door = line.meter.door
        assert line.upstream is not None
        request = rewrite.request(
            call.start,
            target=call.entry.target,
            host=door.upstream.authority,
            key=None if door.key is None else rewrite.key_header(call.entry.path, door.key),
            token=call.entry.token,
            identity=call.exchange.metered,
            framing=framed_as,
        )
        call.launched = True
        if first and call.request_chunked:
            call.exchange.request_passed(len(first))
            first = framing.chunk(first)
        yield commands.SendData(line.upstream, request + first)
        call.exchange.sent()
        line.meter.record(journal.SENT, {"x": call.exchange.id})


def framing_of(body: framing.Body | None, call: Call) -> bytes:
    """Return the header lines for a request body that passes through as it comes; notes how it is framed."""
    expect = (
        b"expect: 100-continue\r\n" if call.expects_continue() and body is not None and not body.done else b""
    )
    if isinstance(body, framing.Sized):
        return expect + b"content-length: %d\r\n" % body.left
    call.request_chunked = body is not None
    return expect + b"transfer-encoding: chunked\r\n" if body is not None else b""
