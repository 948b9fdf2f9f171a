"""What both halves of a lane share: the two connections, the exchange under way, and how it is recorded and ended.

Generators of mitmproxy commands; they run inside the lane's own turn.
"""

from collections.abc import Callable

from mitmproxy import connection
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.context import Context

from kt_gateway import failpoints
from kt_gateway.exchange.exchange import Passage
from kt_gateway.http1 import answers
from kt_gateway.mitm.call import Call
from kt_gateway.mitm.connection import LaneConnection
from kt_gateway.mitm.hooks import KtSettleHook, Moment
from kt_gateway.mitm.meter import Meter
from kt_gateway.mitm.upstream_tls import UpstreamTls
from kt_ledger import journal
from kt_ledger.values import Reason

Commands = layer.CommandGenerator[None]

CONNECT_TIMEOUT_S = 10.0
"""For name, connection and TLS together; the kernel alone would try for minutes. OpenAI's own client gives up at 5."""
LOOK_EVERY_S = 1.0
"""How often it is asked whether a client that sends no more still reads: no event tells when it stops."""
LINGER_S = 2.0
"""How long a client may take to read our last words before its connection is closed for good."""


READ_ON_S = 30.0
"""How long an answer that comes in one piece is waited for when its agent has left: it is paid for either way."""


def _nothing(call: Call) -> Commands:  # noqa: ARG001 (the shape of an action)
    yield from ()


class Line:
    """The state of one client connection."""

    def __init__(
        self, context: Context, *, meter: Meter, wire: LaneConnection, tunnel: UpstreamTls | None
    ) -> None:
        self.context = context
        self.client = context.client
        self.meter = meter
        self.wire = wire
        self.tunnel = tunnel
        self.upstream: connection.Server | None = None
        self.call: Call | None = None
        self.closing = False  # nothing that the client sends is of interest any more
        self.ended = False  # the client sends no more, and still reads
        self.gone = False  # the client has left
        self.timer: commands.RequestWakeup | None = None
        self.once_more: Callable[[Call], Commands] = _nothing  # makes a request again, as it came
        self.request_is_open: Callable[[], bool] = lambda: (
            False
        )  # whether the client has not finished its request

    # -- the upstream ------------------------------------------------------------------------------------------
    def is_connected(self) -> bool:
        """Whether there is an upstream connection that can take the next request."""
        server = self.upstream
        target = self.meter.door.upstream
        if server is None or not server.connected or server.address != (target.host, target.port):
            return False
        return not self.wire.is_gone(server)

    def connect(self) -> layer.CommandGenerator[str | None]:
        """Open a fresh upstream connection; return what went wrong."""
        yield from self.hang_up()
        target = self.meter.door.upstream
        if target.tls != (self.tunnel is not None):
            return "the upstream of this connection has changed"
        server = connection.Server(address=(target.host, target.port), transport_protocol="tcp")
        server.sni = target.host
        if self.tunnel is not None:
            self.tunnel.renew(server)
        self.context.server = server
        self.wire.hold(self.client)
        timer = self.wire.give_up_on(server, CONNECT_TIMEOUT_S)
        error: str | None = yield commands.OpenConnection(server)
        timer.cancel()
        self.wire.go_on(self.client)
        if error is None:
            self.upstream = server
        return error

    def hang_up(self) -> Commands:
        """Close the upstream connection."""
        server, self.upstream = self.upstream, None
        if server is not None:
            self.wire.go_on(server)
            yield commands.CloseConnection(server)

    # -- the exchange ------------------------------------------------------------------------------------------
    def settle(self) -> Commands:
        """Write the close record of the exchange and wait until it is durable; nothing is read meanwhile."""
        call = self.call
        assert call is not None
        if failpoints.ARMED:
            failpoints.ARMED.hit("before_close_record")
        at_ns, mono_ns = self.meter.now()
        self.meter.record(journal.CLOSE, call.exchange.close_fields(at_ns=at_ns, mono_ns=mono_ns))
        if failpoints.ARMED:
            failpoints.ARMED.hit("before_close_sync")
        sides = [self.client] if self.upstream is None else [self.client, self.upstream]
        self.wire.hold(*sides)
        yield KtSettleHook(Moment(self.meter.instance_id))
        self.wire.go_on(*sides)
        if failpoints.ARMED:
            failpoints.ARMED.hit("after_close_sync")

    def give_up(self, reason: Reason) -> layer.CommandGenerator[bytes]:
        """Record that the exchange ends here; return the bytes that the meter had kept back and that may go on."""
        assert self.call is not None
        passage: Passage = self.call.exchange.failed(reason, mono_ns=self.meter.now()[1])
        if passage.settle:
            yield from self.settle()
        return passage.now  # `held` would complete a message that is not complete

    def forget_call(self) -> None:
        """Let go of an exchange whose record is written."""
        if self.call is not None:
            self.call = None
            self.meter.in_flight -= 1

    def flush(self) -> Commands:
        """Send what waits for the agent."""
        call = self.call
        if call is not None and call.out:
            data = bytes(call.out)
            call.out.clear()
            call.answered = True
            call.head_only = False
            yield commands.SendData(self.client, data)

    # -- the client --------------------------------------------------------------------------------------------
    def tell(self, answer: answers.Answer, *, close: bool, head_only: bool) -> Commands:
        """Send an answer of our own."""
        yield commands.SendData(self.client, answer.to_bytes(close=close, head_only=head_only))

    def leave(self) -> Commands:
        """Close towards the client, so that it can read what it was told: our side now, the rest a little later.

        Closing at once with unread bytes in the socket would reset the connection and could destroy the answer.
        """
        self.closing = True
        yield from self.hang_up()
        yield commands.CloseTcpConnection(self.client, half_close=True)
        self.timer = commands.RequestWakeup(LINGER_S)
        yield self.timer

    def reset(self) -> Commands:
        """Cut the client's connection so that nobody takes it for an end."""
        self.closing = True
        yield from self.hang_up()
        self.wire.will_reset(self.client)
        yield commands.CloseConnection(self.client)
