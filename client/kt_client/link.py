"""The blocking transport: one connection a call over the engine's Unix socket.

`Link` asks the engine that is there and starts none.
"""

import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_client import errors, peer, support
from kt_client.errors import EngineAway
from kt_client.wire import ANSWER_TIMEOUT_S, SWITCHING, Conversation, Request
from kt_ledger import unix_socket

CONNECT_TIMEOUT_S = 5.0
PORTION_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Link:
    """Where the engine of one state directory answers."""

    path: Path
    hears_version: Callable[[str], None] | None = None
    """Told which version of the engine answered, once an answer."""

    def answers(self) -> bool:
        """Return whether an engine accepts connections at this moment.

        Raises:
            KtError: exit 1, where the socket is there but not for us.
        """
        try:
            self._connected().close()
        except EngineAway:
            return False
        return True

    def ask(
        self, method: str, target: str, *, body: Any = None, timeout_s: float | None = ANSWER_TIMEOUT_S
    ) -> Any:
        """Return the engine's answer, read as JSON; `document` has the errors.

        Args:
            method: the HTTP method.
            target: path and query, already quoted.
            body: sent as JSON where it is not None.
            timeout_s: how long each part of the answer may take; None waits for ever.
        """
        return self.document(Request(method=method, target=target, body=body, timeout_s=timeout_s))

    def lines(
        self, target: str, *, timeout_s: float | None = None, reader: int | None = None
    ) -> Iterator[Any]:
        """Yield each line of an NDJSON answer as it comes; `stream` has the errors."""
        return self.stream(Request(method="GET", target=target, timeout_s=timeout_s), reader=reader)

    def upgrade(self, target: str, *, protocol: str) -> tuple[socket.socket, Mapping[str, str], bytes]:
        """Return a raw stream, the answer's headers, and the stream's first bytes; errors as `document`."""
        connection = self._asked(Request(method="GET", target=target, upgrade=protocol))
        try:
            conversation = Conversation()
            while not conversation.ended:
                conversation.receive(_received(connection))
            if conversation.status != SWITCHING:
                conversation.document()
                raise errors.lost(OSError(f"status {conversation.status} instead of an upgrade"))
        except BaseException:
            connection.close()
            raise
        connection.settimeout(None)
        return connection, conversation.headers, conversation.beyond

    def document(self, request: Request) -> Any:
        """Return the engine's answer.

        Raises:
            EngineAway: nobody listens.
            EngineLost, EngineLate: it ended in mid-answer, or took too long.
            KtError: it refused, by kind.
        """
        conversation = Conversation()
        with self._asked(request) as connection:
            while not conversation.ended:
                conversation.receive(_received(connection))
        self._tell_version(conversation)
        return conversation.document()

    def stream(self, request: Request, *, reader: int | None = None) -> Iterator[Any]:
        """Yield each line of the answer as it comes; errors as `document`.

        Args:
            request: what to ask.
            reader: the descriptor to which the lines go; nobody waits longer than whoever reads there.

        Raises:
            BrokenPipeError: nobody reads there any more.
        """
        conversation = Conversation(lines=True)
        with self._asked(request) as connection:
            while not conversation.ended:
                if reader is not None:
                    _wait(connection, reader)
                yield from conversation.receive(_received(connection))
        self._tell_version(conversation)
        conversation.document()

    def _tell_version(self, conversation: Conversation) -> None:
        if self.hears_version is not None and conversation.version is not None:
            self.hears_version(conversation.version)

    def _asked(self, request: Request) -> socket.socket:
        connection = self._connected()
        try:
            peer.refuse_stopped(connection)
            connection.settimeout(request.timeout_s)
            connection.sendall(request.encoded())
        except (BrokenPipeError, ConnectionResetError):
            pass  # an engine that refuses a large body early has an answer waiting: reading it is worth more
        except OSError as error:
            connection.close()
            raise errors.lost(error) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _connected(self) -> socket.socket:
        support.check()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_TIMEOUT_S)
        try:
            unix_socket.connect(connection, self.path)
        except OSError as error:
            connection.close()
            raise errors.unreachable(error, self.path) from error
        return connection


def _wait(connection: socket.socket, reader: int) -> None:
    """Return once there is something to receive. Raises BrokenPipeError once nobody reads at `reader` any more."""
    import select

    watched = select.poll()
    watched.register(connection, select.POLLIN)
    watched.register(reader, 0)  # POLLERR comes unasked: the read end of a pipe was closed (poll(2))
    timeout_s = connection.gettimeout()
    ready = dict(watched.poll(None if timeout_s is None else timeout_s * 1e3))
    if ready.get(reader, 0) & select.POLLERR and connection.fileno() not in ready:
        raise BrokenPipeError


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(PORTION_BYTES)
    except OSError as error:
        raise errors.lost(error) from error
