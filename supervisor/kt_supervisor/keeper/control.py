"""The keeper's control socket: lines of JSON from anybody who may open it (`keeper/__init__.py` has the protocol).

Never waits for a peer: what cannot be sent at once is dropped with its connection (the engine connects again and asks
for the status). Bounded: connections, bytes of an unfinished line.
"""

import json
import selectors
import socket
from collections.abc import Callable
from typing import Any

from kt_ledger import unix_socket
from kt_ledger.layout import RunLayout

MAX_CONNECTIONS = 64
MAX_LINE_BYTES = 64 << 10

Answer = Callable[[dict[str, Any], "Connection"], dict[str, Any] | None]
"""Takes a request, gives the answer; None where it answered by itself (a lent socket)."""


class Connection:
    """One peer. `engine`: it said hello and gets the events. `on_close`: told when it ends."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.engine = False
        self.on_close: Callable[[], None] | None = None
        self._buffer = b""

    def received(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return lines

    @property
    def overflows(self) -> bool:
        """Whether the unfinished line is longer than any of the protocol's."""
        return len(self._buffer) > MAX_LINE_BYTES

    def send(self, message: dict[str, Any]) -> bool:
        """Send one line whole, or return False: this peer does not read."""
        line = json.dumps(message).encode() + b"\n"
        try:
            return self.socket.send(line) == len(line)
        except OSError:
            return False


class Control:
    """The listening socket and its connections, inside the keeper's selector."""

    def __init__(self, files: RunLayout, selector: selectors.BaseSelector, answer: Answer) -> None:
        self._selector = selector
        self._answer = answer
        self._connections: set[Connection] = set()
        self._server = unix_socket.bind(files.socket)
        self._server.setblocking(False)
        selector.register(self._server, selectors.EVENT_READ, self._accept)

    @property
    def engine_listens(self) -> bool:
        """Whether an engine said hello and is still there."""
        return any(connection.engine for connection in self._connections)

    def tell_engine(self, event: dict[str, Any]) -> None:
        """Send an event to the engine; a peer that does not read is let go."""
        for connection in [c for c in self._connections if c.engine]:
            if not connection.send(event):
                self._close(connection)

    def close(self) -> None:
        """Close everything."""
        for connection in list(self._connections):
            self._close(connection)
        self._selector.unregister(self._server)
        self._server.close()

    def _accept(self) -> None:
        try:
            peer, _ = self._server.accept()
        except OSError:
            return  # the peer left again, or no descriptors are free: the next readiness tries again
        if len(self._connections) >= MAX_CONNECTIONS:
            peer.close()
            return
        peer.setblocking(False)
        connection = Connection(peer)
        self._connections.add(connection)
        self._selector.register(peer, selectors.EVENT_READ, lambda: self._read(connection))

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(MAX_LINE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        lines = connection.received(data) if data else []
        if not data or connection.overflows or not all(self._take(line, connection) for line in lines):
            self._close(connection)

    def _take(self, line: bytes, connection: Connection) -> bool:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return connection.send({"ok": False, "error": "got no JSON object, wanted one a line"})
        answer = self._answer(request, connection)
        return answer is None or connection.send(answer)

    def _close(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        if connection.on_close:
            connection.on_close()
