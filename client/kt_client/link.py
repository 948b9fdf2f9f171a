"""The blocking transport: one connection a call over the engine's Unix socket.

`Link` asks the engine that is there and starts none.
"""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_client import errors, support
from kt_client.errors import EngineAway
from kt_client.wire import ANSWER_TIMEOUT_S, Conversation, Request
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

    def lines(self, target: str, *, timeout_s: float | None = None) -> Iterator[Any]:
        """Yield each line of an NDJSON answer as it comes; `document` has the errors."""
        return self.stream(Request(method="GET", target=target, timeout_s=timeout_s))

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

    def stream(self, request: Request) -> Iterator[Any]:
        """Yield each line of the answer as it comes; errors as `document`."""
        conversation = Conversation(lines=True)
        with self._asked(request) as connection:
            while not conversation.ended:
                yield from conversation.receive(_received(connection))
        self._tell_version(conversation)
        conversation.document()

    def _tell_version(self, conversation: Conversation) -> None:
        if self.hears_version is not None and conversation.version is not None:
            self.hears_version(conversation.version)

    def _asked(self, request: Request) -> socket.socket:
        connection = self._connected()
        connection.settimeout(request.timeout_s)
        try:
            connection.sendall(request.encoded())
        except (BrokenPipeError, ConnectionResetError):
            pass  # an engine that refuses a large body early has an answer waiting: reading it is worth more
        except OSError as error:
            connection.close()
            raise errors.lost(error) from error
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


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(PORTION_BYTES)
    except OSError as error:
        raise errors.lost(error) from error
