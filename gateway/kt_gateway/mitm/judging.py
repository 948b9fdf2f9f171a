"""Whether an admitted call may still go on: asked again at each step at which time has passed since it was judged.

Rules change while a call reads its body, waits for the journal or connects. What has not left is subject to the rules
of the moment: a withdrawn grant refuses it, a pause holds it. What has left goes on, and is recorded.
"""

from mitmproxy.proxy import layer

from kt_gateway.http1 import answers, door
from kt_gateway.mitm.call import Call
from kt_gateway.mitm.hooks import End, KtHoldHook, Wait
from kt_gateway.mitm.line import Commands, Line
from kt_ledger import journal
from kt_ledger.values import Reason

Refused = layer.CommandGenerator[answers.Answer | None]
"""Yields commands; returns what the agent is to be told when its request did not leave."""


class Judging:
    """Judges the calls of one lane again."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def again(self, call: Call) -> Refused:
        """Judge by the rules of this moment; waits while these hold the call.

        Returns:
            An answer to give in the provider's place; None when the call may go on, or its sender has left: then it
            is not the line's any more.
        """
        line = self._line
        while call.door is not line.meter.door or call.door.hold_s is not None:
            call.door = line.meter.door
            judged = call.door.judge(call.start)
            if isinstance(judged, door.Refusal):
                return (yield from self.refuse(call, judged.answer, judged.reason or Reason.BAD_REQUEST))
            if judged.run_id != call.entry.run_id:
                return (yield from self.refuse(call, door.TOKEN_REFUSED, Reason.REFUSED_TOKEN))
            call.entry = judged
            if call.door.hold_s is None:
                break
            refused = yield from self._wait(call)
            if refused is not None or line.call is not call:
                return refused
        return None

    def _wait(self, call: Call) -> Refused:
        line = self._line
        if call.held_since_ns is None:
            call.held_since_ns = line.meter.now()[1]
        wait = Wait(line.meter.instance_id, call.held_since_ns, lambda: line.wire.is_gone(line.client))
        line.wire.hold(line.client)
        yield KtHoldHook(wait)
        line.wire.go_on(line.client)
        if wait.end in (End.EXPIRED, End.FULL):
            answer = call.door.paused(call.entry.path)
            return (yield from self.refuse(call, answer, Reason.INSTANCE_PAUSED))
        if wait.end is End.LEAVING:
            yield from self.reset(call, Reason.GATEWAY_HANDED_OVER)
        elif wait.end is End.GONE or line.wire.is_gone(line.client):
            yield from self.reset(call, Reason.CLIENT_GONE_BEFORE_SEND)
        return None

    def refuse(self, call: Call, answer: answers.Answer, reason: Reason) -> Refused:
        """Record a call that gets `answer` from us instead of leaving; return the answer."""
        yield from self.end(call, reason, status=answer.status)
        return answer

    def reset(self, call: Call, reason: Reason) -> Commands:
        """Record a call that did not leave, and cut its sender's connection."""
        yield from self.end(call, reason, status=None)
        yield from self._line.reset()

    def end(self, call: Call, reason: Reason, *, status: int | None) -> Commands:
        """Record a request that ends before anything of it left, or whose own end never left."""
        line = self._line
        if call.launched or call.opened:
            if status is not None and not call.launched:
                call.exchange.response_head(status=status, headers=(), mono_ns=line.meter.now()[1])
            yield from line.give_up(reason)
            if call.launched:
                yield from line.hang_up()
        else:
            call.exchange.open_fields()
            at_ns, mono_ns = line.meter.now()
            call.exchange.failed(reason, mono_ns=mono_ns)
            fields = call.exchange.close_fields(at_ns=at_ns, mono_ns=mono_ns)
            line.meter.record(journal.LOCAL, {**fields, "status": status})
        line.forget_call()
