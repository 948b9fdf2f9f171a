"""mitmproxy's connection handler with what a lane needs beyond it: pressure back, presence, and reset.

Differs from `ProxyConnectionHandler` in `handle_connection`, and in the way that our own hooks take: a connection can
be told not to be read for a while, and after each read only the writers that may have been written to are drained,
so that a reader that left does not take the other side with it. Pinned by tests/contract/test_mitmproxy.py.
"""

import asyncio
import socket
import struct
from typing import Protocol

from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.proxy import commands, events, mode_servers

from kt_gateway.mitm import presence
from kt_gateway.mitm.hooks import KtAdmitHook, KtHoldHook, KtSettleHook, Moment, Wait

READ_BYTES = 65535
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER {on, 0 s}: close() sends RST (socket(7))


class HookDesk(Protocol):
    """The addon that our hooks are for."""

    async def kt_settle(self, moment: Moment) -> None:
        """Return once the close record is durable, or cannot become so."""
        ...

    async def kt_admit(self, moment: Moment) -> None:
        """Return once records can be written, or waiting is over."""
        ...

    async def kt_hold(self, wait: Wait) -> None:
        """Return once a held call may be judged again, or cannot wait any longer."""
        ...


class LaneConnection(mode_servers.ProxyConnectionHandler):
    """One client connection and the upstream connection behind it."""

    def __init__(self, *arguments: object, desk: HookDesk) -> None:
        super().__init__(*arguments)  # type: ignore[no-untyped-call]
        self._desk = desk
        self._held: set[int] = set()  # id() of connections: mitmproxy's own hash is a Python call
        self._gates: dict[int, asyncio.Event] = {}

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Take our own hooks straight to our own addon: mitmproxy's round through all of them costs 30 us a call."""
        if isinstance(hook, KtSettleHook):
            await self._desk.kt_settle(hook.data)
        elif isinstance(hook, KtAdmitHook):
            await self._desk.kt_admit(hook.data)
        elif isinstance(hook, KtHoldHook):
            await self._desk.kt_hold(hook.data)
        else:
            await super().handle_hook(hook)

    def hold(self, *connections: Connection) -> None:
        """Read no more from `connections` until `go_on`: what they send stays with the kernel."""
        for connection in connections:
            self._held.add(id(connection))

    def go_on(self, *connections: Connection) -> None:
        """Read again."""
        for connection in connections:
            self._held.discard(id(connection))
            gate = self._gates.pop(id(connection), None)
            if gate is not None:
                gate.set()

    def is_gone(self, connection: Connection) -> bool:
        """Whether the peer has closed or reset `connection`, as far as the kernel knows at this moment.

        An agent that merely shut down its sending side is still there, where that can be known; a provider that did
        takes no further request.
        """
        io = self.transports.get(connection)
        if io is None or not isinstance(io.writer, asyncio.StreamWriter) or io.writer.is_closing():
            return True
        assert isinstance(io.reader, asyncio.StreamReader)
        if io.reader.exception() is not None:
            return True
        ended_is_gone = connection is not self.client
        if io.reader.at_eof() and ended_is_gone:
            return True
        return presence.has_left(io.writer.get_extra_info("socket"), or_ended=ended_is_gone)

    def give_up_on(self, connection: Connection, after_s: float) -> asyncio.TimerHandle:
        """Cancel the task of `connection` after a while, unless the returned timer is cancelled before."""

        def cancel() -> None:
            io = self.transports.get(connection)
            if io is not None and io.handler is not None:
                io.handler.cancel(f"not connected within {after_s} s")

        return asyncio.get_running_loop().call_later(after_s, cancel)

    def will_reset(self, connection: Connection) -> None:
        """Let the coming close of `connection` reset it (RST), which no reader takes for an end."""
        io = self.transports.get(connection)
        if io is not None and isinstance(io.writer, asyncio.StreamWriter):
            try:
                endpoint = io.writer.get_extra_info("socket")
                endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            except OSError:
                pass  # it is closed already

    async def handle_connection(self, connection: Connection) -> None:
        """Read `connection` to its end, then wait until our own side is closed."""
        reader = self.transports[connection].reader
        assert isinstance(reader, asyncio.StreamReader)
        cancelled: asyncio.CancelledError | None = None
        try:
            await self._read_all(connection, reader)
        except asyncio.CancelledError as error:
            cancelled = error
        if cancelled is None:
            connection.state &= ~ConnectionState.CAN_READ
        else:
            connection.state = ConnectionState.CLOSED
        await self.server_event(events.ConnectionClosed(connection))
        if connection.state is ConnectionState.CAN_WRITE:
            # Their side is closed, ours is not: a command of the layer cancels this task when we are done.
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                cancelled = error
        writer = self.transports.pop(connection).writer
        assert isinstance(writer, asyncio.StreamWriter)
        writer.close()
        if cancelled is not None:
            raise cancelled

    async def _read_all(self, connection: Connection, reader: asyncio.StreamReader) -> None:
        while True:
            while id(connection) in self._held:
                await self._gates.setdefault(id(connection), asyncio.Event()).wait()
            try:
                data = await reader.read(READ_BYTES)
            except OSError:
                return
            if not data:
                return
            await self.server_event(events.DataReceived(connection, data))
            await self._drain_others(connection)

    async def _drain_others(self, connection: Connection) -> None:
        """Wait while the other side takes no more: a slow reader slows its sender, not our memory."""
        for other, io in list(self.transports.items()):
            if other is connection or not isinstance(io.writer, asyncio.StreamWriter):
                continue
            if not io.writer.transport.get_write_buffer_size() or not other.state & ConnectionState.CAN_READ:
                continue
            try:
                await io.writer.drain()
            except OSError:
                pass  # its own reader learns of it and tells the layer
