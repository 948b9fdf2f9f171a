"""The second half of a lane: the provider's answer, as it comes, with its end held until it is on record.

Towards the agent an answer is sized or chunked; what ends only with its connection is framed anew. A cut answer is
never given a clean end: the agent's connection is reset.
"""

from mitmproxy.proxy import commands, layer

from kt_gateway import failpoints
from kt_gateway.exchange.exchange import Passage
from kt_gateway.http1 import answers, framing, head, rewrite
from kt_gateway.mitm.call import Call
from kt_gateway.mitm.line import Commands, Line
from kt_ledger.values import Reason


class Answering:
    """What the provider sends."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def feed(self, data: bytes) -> Commands:
        """Take bytes of the provider; the exchange is over when the line has no call any more."""
        line = self._line
        call = line.call
        if call is None or not call.launched:
            yield from line.hang_up()  # bytes that nobody asked for: never to be taken for the next answer
            return
        try:
            if call.answer is None:
                call.buffer += data
                data = yield from self._read_heads(call)
            if line.call is call and call.answer is not None:
                yield from self._read_body(call, data)
        except head.BadMessage as bad:
            yield from self._break_off(call, bad)
            return
        if not call.exchange.in_doubt:
            yield from line.flush()

    def closed(self) -> Commands:
        """Take the end of the provider's connection."""
        line = self._line
        call = line.call
        if call is None or not call.launched:
            return
        if isinstance(call.body, framing.UntilClose):
            yield from self._end(call)
            yield from line.flush()
            return
        yield from self._cut(call, Reason.UPSTREAM_CUT)

    def _read_heads(self, call: Call) -> layer.CommandGenerator[bytes]:
        """Take interim heads and the final one; return the bytes behind it."""
        while (answer := head.take_response(call.buffer)) is not None:
            if answer.status == 101:
                raise head.BadMessage(502, "got a switch of protocols that nobody asked for")
            if answer.status >= 200:
                rest = bytes(call.buffer)
                call.buffer.clear()
                yield from self._begin(call, answer)
                return rest
            if call.start.minor == 1:
                yield commands.SendData(self._line.client, rewrite.interim(answer))
        return b""

    def _begin(self, call: Call, answer: head.ResponseStart) -> Commands:
        call.body = framing.of_response(answer, method=call.start.method)
        call.answer = answer
        headers, mono_ns = answer.headers, self._line.meter.now()[1]
        call.exchange.response_head(status=answer.status, headers=headers, mono_ns=mono_ns)
        call.close = call.close or self._line.meter.draining
        call.out += rewrite.response(answer, framing=self._framing(call), close=call.close)
        call.head_only = True
        if call.body is None or call.body.done:
            yield from self._end(call)

    def _framing(self, call: Call) -> bytes:
        if call.body is None:
            return b""
        if isinstance(call.body, framing.Sized) and not call.exchange.may_withhold:
            return b"content-length: %d\r\n" % call.body.left
        if call.start.minor == 0:
            return b""
        call.chunked = True
        return b"transfer-encoding: chunked\r\n"

    def _read_body(self, call: Call, data: bytes) -> Commands:
        if not data or call.body is None:
            return
        piece, rest = call.body.feed(data)
        done = call.body.done
        if piece:
            last = done and isinstance(call.body, framing.Sized)
            mono_ns = self._line.meter.now()[1]
            yield from self._pass_on(call, call.exchange.response_data(piece, last=last, mono_ns=mono_ns))
            if failpoints.ARMED:
                yield from self._line.flush()
                failpoints.ARMED.hit("mid_stream")
        if done:
            if rest:
                # More than was announced: whatever it is, it is no answer to the next request.
                yield from self._line.hang_up()
            yield from self._end(call)

    def _pass_on(self, call: Call, passage: Passage) -> Commands:
        call.put(passage.now)
        if passage.settle:
            if not call.head_only:
                yield from self._line.flush()
            yield from self._line.settle()
            call.clean = call.exchange.ended_cleanly
            if not call.clean:
                return  # `held` would complete the message; `_end` resets the connection instead
        call.put(passage.held)

    def _end(self, call: Call) -> Commands:
        """Take the proper end of the answer."""
        line = self._line
        yield from self._pass_on(call, call.exchange.response_end(mono_ns=line.meter.now()[1]))
        if call.exchange.again:
            yield from self._once_more(call)
            return
        if not call.clean:
            yield from line.flush()
            line.forget_call()
            yield from line.reset()
            return
        yield from self._finish(call)

    def _once_more(self, call: Call) -> Commands:
        """Drop an answer that refused what only we asked for, and make the request as it came."""
        line = self._line
        assert call.answer is not None
        line.forget_call()
        line.meter.note_unasked(call.exchange.model)
        if isinstance(call.body, framing.UntilClose) or not _keeps_alive(call.answer):
            yield from line.hang_up()
        yield from line.once_more(call)

    def _finish(self, call: Call) -> Commands:
        line = self._line
        assert call.answer is not None
        if call.chunked:
            call.out += framing.last_chunk(call.body.trailers if call.body is not None else ())
        yield from line.flush()
        line.forget_call()
        if isinstance(call.body, framing.UntilClose) or not _keeps_alive(call.answer):
            yield from line.hang_up()
        if call.close or line.request_is_open():
            yield from line.leave()

    def _cut(self, call: Call, reason: Reason) -> Commands:
        """Take an end that is none."""
        line = self._line
        kept = yield from line.give_up(reason)
        call.put(kept)
        yield from line.flush()
        line.forget_call()
        yield from line.reset()

    def _break_off(self, call: Call, bad: head.BadMessage) -> Commands:
        """End an answer that is not HTTP."""
        line = self._line
        if call.answered or call.answer is not None:
            yield from self._cut(call, Reason.UPSTREAM_CUT)
            return
        yield from line.give_up(Reason.UPSTREAM_CUT)
        line.forget_call()
        answer = answers.error(502, "upstream_broken", f"the provider's answer is not HTTP: {bad.why}")
        yield from line.tell(answer, close=True, head_only=call.start.method == b"HEAD")
        yield from line.leave()


def _keeps_alive(answer: head.ResponseStart) -> bool:
    return answer.minor == 1 and b"close" not in rewrite.connection_options(answer.headers)
