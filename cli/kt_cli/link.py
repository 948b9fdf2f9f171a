"""HTTP with JSON over the engine's Unix socket, in as little code as it takes.

One connection a call (`Connection: close`). Reads sized, chunked and close-delimited answers. `http.client` would do it
too, and would cost more than the rest of `kt agent list` (it brings the e-mail parser). The engine's refusals
(`{"error": {"code", "exit_code", "message"}}`) become `Failure`.
"""

import json
import select
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_cli import exit_codes
from kt_cli.failure import Failure
from kt_ledger import unix_socket

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0
ENGINE_LOST = "engine_lost"
"""The code of a failure in mid-answer: the engine was there, and is not any more."""
_PORTION_BYTES = 64 << 10


class EngineAway(Exception):
    """Nobody listens at the engine's socket."""


@dataclass(frozen=True, slots=True)
class Link:
    """Where the engine of one state directory answers."""

    path: Path

    def answers(self) -> bool:
        """Return whether an engine accepts connections at this moment.

        Raises:
            Failure: exit 1, where the socket is there but not for us.
        """
        try:
            self._connected().close()
        except EngineAway:
            return False
        return True

    def ask(
        self, method: str, target: str, *, body: Any = None, timeout_s: float | None = ANSWER_TIMEOUT_S
    ) -> Any:
        """Return the engine's answer, read as JSON.

        Args:
            method: the HTTP method.
            target: path and query, already quoted.
            body: sent as JSON where it is not None.
            timeout_s: how long each part of the answer may take; None waits for ever.

        Raises:
            EngineAway: nobody listens.
            Failure: the engine refused, ended in mid-answer, or took too long.
        """
        with self._asked(method, target, body, timeout_s) as connection:
            answer = _Answer(connection)
            content = b"".join(answer.body())
        return _document(answer.status, content)

    def lines(
        self, target: str, *, timeout_s: float | None = None, reader: int | None = None
    ) -> Iterator[Any]:
        """Yield each line of an NDJSON answer as it comes; errors as in `ask`.

        Args:
            target: path and query, already quoted.
            timeout_s: how long each part of the answer may take; None waits for ever.
            reader: the descriptor to which the lines go; nobody waits longer than whoever reads there.

        Raises:
            BrokenPipeError: nobody reads there any more.
        """
        with self._asked("GET", target, None, timeout_s) as connection:
            answer = _Answer(connection, reader=reader)
            if answer.status >= 300:
                _document(answer.status, b"".join(answer.body()))
            rest = b""
            for data in answer.body():
                *whole, rest = (rest + data).split(b"\n")
                yield from (json.loads(line) for line in whole if line.strip())
            if rest.strip():
                yield json.loads(rest)

    def upgrade(self, target: str, *, protocol: str) -> tuple[socket.socket, Mapping[str, str], bytes]:
        """Return a raw stream, the answer's headers, and the stream's first bytes; errors as in `ask`."""
        more = f"upgrade: {protocol}\r\n"
        connection = self._asked("GET", target, None, ANSWER_TIMEOUT_S, kept="upgrade", more=more)
        try:
            answer = _Answer(connection)
            if answer.status != 101:
                _document(answer.status, b"".join(answer.body()))
                raise _lost(OSError(f"status {answer.status} instead of an upgrade"))
        except BaseException:
            connection.close()
            raise
        connection.settimeout(None)
        return connection, answer.headers, answer.buffered

    def _asked(
        self,
        method: str,
        target: str,
        body: Any,
        timeout_s: float | None,
        *,
        kept: str = "close",
        more: str = "",
    ) -> socket.socket:
        connection = self._connected()
        connection.settimeout(timeout_s)
        content = b"" if body is None else json.dumps(body).encode("utf-8", "surrogateescape")
        head = f"{method} {target} HTTP/1.1\r\nhost: engine\r\nconnection: {kept}\r\n{more}"
        head += f"content-length: {len(content)}\r\ncontent-type: application/json\r\n\r\n"
        try:
            connection.sendall(head.encode() + content)
        except OSError as error:
            # An engine that refuses a large body early has an answer waiting; reading it is worth more than this.
            if not isinstance(error, BrokenPipeError | ConnectionResetError):
                raise _lost(error) from error
        return connection

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_TIMEOUT_S)
        try:
            unix_socket.connect(connection, self.path)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
            connection.close()
            raise EngineAway(str(error)) from error
        except OSError as error:
            connection.close()
            raise Failure(
                f"cannot reach the engine: got {error.strerror or error} at {self.path}, wanted a socket of our own; "
                f"check who owns the state directory and its permissions",
                exit_code=exit_codes.FAILED,
            ) from error
        return connection


class _Answer:
    """One HTTP answer: the head is read at once, the body as it is iterated."""

    def __init__(self, connection: socket.socket, *, reader: int | None = None) -> None:
        self._connection = connection
        self._reader = reader
        self.buffered = b""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        first, *lines = head.split("\r\n")
        parts = first.split(" ", 2)
        if len(parts) < 2 or not parts[1].isdecimal():
            raise _lost(OSError(f"{first[:60]!r} is no HTTP answer"))
        self.status = int(parts[1])
        self.headers = {
            name.strip().lower(): value.strip().lower()
            for name, _, value in (line.partition(":") for line in lines)
        }

    def body(self) -> Iterator[bytes]:
        """Yield the body's bytes as they come."""
        if "chunked" in self.headers.get("transfer-encoding", ""):
            yield from self._chunks()
        elif "content-length" in self.headers:
            yield from self._sized(int(self.headers["content-length"]))
        else:
            while data := self._some():
                yield data

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._until(b"\r\n").partition(b";")[0], 16):
            yield from self._sized(size)
            self._until(b"\r\n")

    def _sized(self, size: int) -> Iterator[bytes]:
        while size:
            data = self._some()
            if not data:
                raise _lost(OSError(f"the answer lacks {size} bytes"))
            self.buffered = data[size:]
            size -= len(data[:size])
            yield data[: len(data) - len(self.buffered)]

    def _until(self, mark: bytes) -> bytes:
        while mark not in self.buffered:
            data = self._received()
            if not data:
                raise _lost(OSError("the connection ended"))
            self.buffered += data
        line, _, self.buffered = self.buffered.partition(mark)
        return line

    def _some(self) -> bytes:
        data, self.buffered = self.buffered, b""
        return data or self._received()

    def _received(self) -> bytes:
        if self._reader is not None:
            _wait(self._connection, self._reader)
        try:
            return self._connection.recv(_PORTION_BYTES)
        except OSError as error:
            raise _lost(error) from error


def _wait(connection: socket.socket, reader: int) -> None:
    """Return once there is something to receive. Raises BrokenPipeError once nobody reads at `reader` any more."""
    watched = select.poll()
    watched.register(connection, select.POLLIN)
    watched.register(reader, 0)  # POLLERR comes unasked: the read end of a pipe was closed (poll(2))
    timeout_s = connection.gettimeout()
    ready = dict(watched.poll(None if timeout_s is None else timeout_s * 1e3))
    if ready.get(reader, 0) & select.POLLERR and connection.fileno() not in ready:
        raise BrokenPipeError


def _document(status: int, content: bytes) -> Any:
    try:
        document = json.loads(content) if content.strip() else {}
    except ValueError as error:
        raise _lost(OSError(f"{content[:60]!r} is no JSON")) from error
    if status < 300:
        return document
    refusal = document.get("error") if isinstance(document, dict) else None
    facts = (
        refusal
        if isinstance(refusal, dict)
        else {"message": f"the engine answered {status}: {content[:200]!r}"}
    )
    raise Failure(
        str(facts.get("message", f"the engine answered {status}")),
        exit_code=int(facts.get("exit_code", exit_codes.FAILED)),
        code=str(facts.get("code", "failed")),
    )


def _lost(error: OSError) -> Failure:
    late = isinstance(error, TimeoutError)
    return Failure(
        f"the engine {'did not answer in time' if late else f'went away in mid-answer ({error})'}; what was asked may "
        f"have been done: look with `kt agent list`, and at engine.log in the state directory",
        exit_code=exit_codes.FAILED,
        code="engine_late" if late else ENGINE_LOST,
    )
