"""The keeper's socket: lines of JSON in, lines of JSON out, and nothing a peer does can stop the keeper.

Lines are at most 64 KiB, connections at most 64. A peer that does not read is not read from; the engine that does not
read misses no state, because "output" events are never queued twice.
"""

import json
import os
import socket
import struct
from collections.abc import Callable

from kt_supervisor.keeper import loop, system

MAX_LINE_BYTES = 64 * 1024
MAX_QUEUE_BYTES = 256 * 1024
MAX_CONNECTIONS = 64
_ACCEPT_AGAIN_S = 0.5
_READ_BYTES = 16 * 1024

Record = dict[str, object]


class Connection:
    """One peer. `handle(connection, request)` is called per line, `closed(connection)` once."""

    def __init__(
        self,
        events: loop.Loop,
        stream: socket.socket,
        *,
        handle: "Callable[[Connection, Record], None]",
        closed: "Callable[[Connection], None]",
    ) -> None:
        self.stream = stream
        self.open = True
        self._loop = events
        self._handle = handle
        self._closed = closed
        self._input = b""
        self._output = b""
        self._ending = False
        stream.setblocking(False)
        self._watch()

    def send(self, record: Record) -> None:
        """Queue one line; a peer that let 256 KiB pile up is cut off."""
        if not self.open:
            return
        self._output += json.dumps(record).encode() + b"\n"
        self._write()
        if len(self._output) > MAX_QUEUE_BYTES:
            self.close()

    def send_descriptors(self, record: Record, descriptors: list[int]) -> None:
        """Send one line at once, with duplicates of `descriptors` attached.

        Raises:
            OSError: the peer is gone, or has not read what it was sent before.
        """
        if not self.idle():
            raise BlockingIOError("the peer reads too slowly")
        socket.send_fds(self.stream, [json.dumps(record).encode() + b"\n"], descriptors)

    def idle(self) -> bool:
        """Return whether everything queued has been handed to the kernel."""
        return self.open and not self._output

    def finish(self) -> None:
        """Close once the queue is written."""
        self._ending = True
        self._write()

    def close(self) -> None:
        """Close now; harmless when closed."""
        if not self.open:
            return
        self.open = False
        self._loop.unwatch(self.stream.fileno())
        self.stream.close()
        self._closed(self)

    def _watch(self) -> None:
        # Not reading from who does not read bounds the queue by itself.
        events = loop.WRITE if self._output else loop.READ
        self._loop.watch(self.stream.fileno(), self._ready, events)

    def _ready(self, events: int) -> None:
        if events & loop.WRITE:
            self._write()
        elif events & loop.READ:
            self._read()

    def _write(self) -> None:
        try:
            while self.open and self._output:
                sent = self.stream.send(self._output)
                self._output = self._output[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        if self.open and self._ending and not self._output:
            self.close()
        if self.open:
            self._watch()

    def _read(self) -> None:
        try:
            data = self.stream.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            if self.open and not self._ending:
                self._take(line)
        if len(self._input) > MAX_LINE_BYTES:
            self._input = b""
            self._refuse(f"got a line of more than {MAX_LINE_BYTES} bytes, wanted a short one; closing")

    def _take(self, line: bytes) -> None:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict) or not isinstance(request.get("op"), str):
            self._refuse(f'got {line[:80]!r}, wanted one JSON object with an "op"; closing')
            return
        self._handle(self, request)

    def _refuse(self, why: str) -> None:
        self.send({"ok": False, "error": why})
        if self.open:
            self.finish()


class Server:
    """Listens on a name in the working directory, for this user and root only."""

    def __init__(
        self,
        events: loop.Loop,
        name: str,
        *,
        handle: Callable[[Connection, Record], None],
        closed: Callable[[Connection], None],
    ) -> None:
        """Bind, 0600 from birth, replacing a stale socket: the caller holds the Run's lock.

        Raises:
            OSError: it cannot be bound.
        """
        self._loop = events
        self._handle = handle
        self._closed = closed
        self._connections: set[Connection] = set()
        fresh = f".{name}.{os.getpid()}"
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.setblocking(False)
        self._server.bind(fresh)  # the keeper's umask is 077
        os.chmod(fresh, 0o600)
        self._server.listen(MAX_CONNECTIONS)
        os.rename(fresh, name)
        self._accepting()

    def idle(self) -> bool:
        """Return whether every peer has been sent all that was meant for it."""
        return all(connection.idle() for connection in self._connections)

    def _accepting(self) -> None:
        self._loop.watch(self._server.fileno(), self._accept)

    def _accept(self, _events: int) -> None:
        try:
            stream, _ = self._server.accept()
        except BlockingIOError:
            return
        except OSError:  # out of descriptors: the queue waits, the agent does not
            self._loop.unwatch(self._server.fileno())
            self._loop.after(_ACCEPT_AGAIN_S, self._accepting)
            return
        if len(self._connections) >= MAX_CONNECTIONS or not _ours(stream):
            stream.close()
            return
        self._connections.add(Connection(self._loop, stream, handle=self._handle, closed=self._forget))

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._closed(connection)


def _ours(stream: socket.socket) -> bool:
    if not system.LINUX:
        return True  # the folder is 0700
    _, uid, _ = struct.unpack("3i", stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (os.getuid(), 0)
