"""The proxy mode `instance:<id>@127.0.0.1:<port>`: an agent instance's listener as a mitmproxy server.

Two of mitmproxy's extension points: a `ProxyMode` subclass, found by its name, and an `AsyncioServerInstance`
subclass, found by the mode in its bases. The listening socket is handed in, bound already, so that a port that is
taken shows where it was asked for.
"""

import asyncio
import socket
from dataclasses import dataclass
from typing import Any, Protocol

from mitmproxy import ctx
from mitmproxy.proxy import layer, mode_servers, mode_specs
from mitmproxy.proxy.context import Context

from kt_gateway.mitm.connection import HookDesk, LaneConnection
from kt_gateway.mitm.lane import Lane
from kt_gateway.mitm.meter import Meter
from kt_gateway.mitm.upstream_tls import UpstreamTls

DISPATCHER = "ktdispatcher"
"""The name of the addon that knows meters and sockets by instance."""
BACKLOG = 512


class Desk(HookDesk, Protocol):
    """The addon that a listener asks for what belongs to it."""

    def meter(self, instance_id: str) -> Meter:
        """Return the meter of an instance."""
        ...

    def listening_socket(self, instance_id: str) -> socket.socket:
        """Return the bound socket of an instance; it stays the desk's."""
        ...


@dataclass(frozen=True)
class InstanceMode(mode_specs.ProxyMode):
    """A listener of one agent instance; `data` is the instance's id."""

    description = "agent instance listener"
    transport_protocol = "tcp"

    def __post_init__(self) -> None:
        """Refuse a listener of nobody, or one without an address."""
        if not self.data or self.custom_listen_port is None:
            raise ValueError("wanted instance:<id>@127.0.0.1:<port>")


def spec(instance_id: str, port: int) -> str:
    """Return the mode that serves `instance_id` on `port`."""
    return f"instance:{instance_id}@127.0.0.1:{port}"


class InstanceServer(mode_servers.AsyncioServerInstance[InstanceMode]):
    """The server of one listener."""

    def _desk(self) -> Desk:
        desk: Desk = ctx.master.addons.get(DISPATCHER)
        return desk

    async def listen(self, host: str, port: int) -> list[Any]:  # noqa: ARG002
        """Accept on a duplicate of the socket that was handed in; the address is the socket's own."""
        handed_in = self._desk().listening_socket(self.mode.data).dup()
        return [await asyncio.start_server(self.handle_stream, sock=handed_in, backlog=BACKLOG)]

    def make_top_layer(self, context: Context) -> layer.Layer:  # noqa: ARG002
        """Refuse: the layer needs its connection's handler, `handle_stream` makes it."""
        raise AssertionError("a lane is made together with its connection")

    async def handle_stream(self, reader: Any, writer: Any = None) -> None:
        """Serve one client connection."""
        desk = self._desk()
        connection = LaneConnection(ctx.master, reader, writer, ctx.options, self.mode, desk=desk)
        context = connection.layer.context
        meter = desk.meter(self.mode.data)
        tunnel = UpstreamTls(context) if meter.door.upstream.tls else None
        lane = Lane(context, meter=meter, wire=connection, tunnel=tunnel)
        if tunnel is not None:
            tunnel.child_layer = lane
        connection.layer = lane if tunnel is None else tunnel
        with self.manager.register_connection(context.client.id, connection):
            await connection.handle_client()
