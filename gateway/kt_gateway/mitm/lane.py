"""The lane: a mitmproxy layer that passes HTTP/1.1 exchanges of one client connection, one after another.

It decides nothing about usage (the exchange does), nothing about who may come in (the door does) and touches no
socket (its commands and `LaneConnection` do). Law: the open record is written before anything leaves, the close
record is durable before the end of an answer leaves.
"""

import logging

from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context

from kt_gateway.mitm.answering import Answering
from kt_gateway.mitm.asking import Asking
from kt_gateway.mitm.call import Call
from kt_gateway.mitm.connection import LaneConnection
from kt_gateway.mitm.hooks import GatewayStops
from kt_gateway.mitm.line import LINGER_S, LOOK_EVERY_S, READ_ON_S, Commands, Line
from kt_gateway.mitm.meter import Meter
from kt_gateway.mitm.upstream_tls import UpstreamTls
from kt_ledger.values import Reason

logger = logging.getLogger(__name__)


class Lane(layer.Layer):
    """One client connection's exchanges."""

    def __init__(
        self, context: Context, *, meter: Meter, wire: LaneConnection, tunnel: UpstreamTls | None
    ) -> None:
        super().__init__(context)
        self._line = Line(context, meter=meter, wire=wire, tunnel=tunnel)
        self._asking = Asking(self._line)
        self._answering = Answering(self._line)
        self._look: commands.RequestWakeup | None = None
        self._line.once_more = self._asking.once_more
        self._line.request_is_open = lambda: self._asking.body_is_open

    def _handle_event(self, event: events.Event) -> Commands:
        line = self._line
        try:
            if not isinstance(event, events.DataReceived):
                yield from self._take(event)
            elif event.connection is line.upstream:
                yield from self._answering.feed(event.data)
                yield from self._go_on()
            elif event.connection is line.client and not line.closing:
                yield from self._asking.feed(event.data)
                yield from self._leave_who_ended()
        except Exception:
            # A fault of the lane itself: nothing sensible can follow on this connection.
            logger.exception("a lane of instance %s failed", self._line.meter.instance_id)
            yield from self._abandon(Reason.METER_FAULT)

    def _take(self, event: events.Event) -> Commands:
        line = self._line
        if isinstance(event, events.ConnectionClosed):
            if event.connection is line.client:
                yield from self._client_ended()
            elif event.connection is line.upstream:
                yield from self._answering.closed()
                yield from line.hang_up()
                yield from self._go_on()
        elif isinstance(event, events.Wakeup):
            if event.command is line.timer:
                yield from self._end_for_the_client()
            elif event.command is self._look:
                yield from self._look_for_the_client()
            else:
                yield from self._asking.woken(event.command)
        elif isinstance(event, GatewayStops):
            yield from self._abandon(Reason.GATEWAY_DIED)

    def _go_on(self) -> Commands:
        """Serve the next request once an exchange is over."""
        line = self._line
        if line.call is None and line.gone:
            yield from self._end_for_the_client()
        if line.call is None and not line.closing:
            line.wire.go_on(line.client)
            yield from self._asking.serve()
            yield from self._leave_who_ended()

    def _client_ended(self) -> Commands:
        """Take the end of what the client sends: it has left, or waits for the answers to what it sent whole."""
        line = self._line
        if line.closing or not self._asking.has_whole_request or line.wire.is_gone(line.client):
            yield from self._client_left()
            return
        line.ended = True
        yield from self._look_again()

    def _look_for_the_client(self) -> Commands:
        """See whether a client that sends no more has gone meanwhile."""
        self._look = None
        if self._line.closing:
            return
        if self._line.wire.is_gone(self._line.client):
            yield from self._client_left()
        else:
            yield from self._look_again()

    def _look_again(self) -> Commands:
        self._look = commands.RequestWakeup(LOOK_EVERY_S)
        yield self._look

    def _leave_who_ended(self) -> Commands:
        """Close towards a client that sends no more once everything it asked for whole is answered."""
        line = self._line
        if not line.ended or line.closing:
            return
        if line.call is None:
            yield from line.leave()
        elif not self._asking.has_whole_request:
            yield from self._client_left()

    def _client_left(self) -> Commands:
        line = self._line
        was_closing, line.closing, line.gone = line.closing, True, True
        yield from self._asking.client_left()
        call = line.call
        read_on_s = 0.0 if call is None or was_closing else self._worth_reading_s(call)
        if not read_on_s:
            yield from self._end_for_the_client()
            return
        line.timer = commands.RequestWakeup(read_on_s)
        yield line.timer

    def _worth_reading_s(self, call: Call) -> float:
        """Return how long to read on without the agent: only where the usage is paid for already, and near."""
        if call.exchange.settled or self._asking.body_is_open:
            return 0.0
        if call.exchange.finish_seen:
            return LINGER_S
        return READ_ON_S if call.exchange.comes_at_once else 0.0

    def _end_for_the_client(self) -> Commands:
        line = self._line
        if line.call is not None:
            yield from line.give_up(Reason.CLIENT_GONE)
            line.forget_call()
        yield from line.hang_up()
        yield commands.CloseConnection(line.client)

    def _abandon(self, reason: Reason) -> Commands:
        line = self._line
        if line.call is not None:
            if line.call.launched:
                yield from line.give_up(reason)
            line.forget_call()
        yield from line.reset()
