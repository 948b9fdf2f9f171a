"""A provider of models made of raw sockets and threads: it logs what reaches it and answers byte for byte as told."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

DEADLINE_S = 20.0


@dataclass
class Asked:
    """One request as it arrived; `head` is raw, `body` without its framing."""

    head: bytes
    body: bytes
    connection: int

    @property
    def line(self) -> bytes:
        return self.head.split(b"\r\n", 1)[0]

    @property
    def path(self) -> bytes:
        return self.line.split(b" ")[1]

    def values(self, name: bytes) -> list[bytes]:
        lines = [line.partition(b": ") for line in self.head.split(b"\r\n")[1:]]
        return [value for key, _, value in lines if key.lower() == name]


class Wire:
    """A provider's end of one connection."""

    def __init__(self, endpoint: socket.socket, number: int) -> None:
        self.endpoint = endpoint
        self.number = number
        self.buffer = b""

    def send(self, data: bytes) -> None:
        self.endpoint.sendall(data)

    def more(self) -> bytes:
        data = self.endpoint.recv(1 << 16)
        self.buffer += data
        return data

    def until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            if not self.more():
                raise EOFError
        found, _, self.buffer = self.buffer.partition(mark)
        return found

    def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            if not self.more():
                raise EOFError
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def gone(self) -> bool:
        """Wait until the gateway closes this connection."""
        try:
            while self.endpoint.recv(1 << 16):
                pass
        except OSError:
            pass
        return True

    def reset(self) -> None:
        self.endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.endpoint.close()


Script = Callable[[Asked, Wire], bool]
"""Answers one request; whether the connection goes on."""


@dataclass
class Provider:
    """The server; `script` answers each request, `head_script` may answer before a body was read."""

    script: Script
    head_script: Callable[[bytes, Wire], bool | None] | None = None
    tls: ssl.SSLContext | None = None
    log: list[Asked] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.changed = threading.Condition()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return (
            f"{'https' if self.tls else 'http'}://{'localhost' if self.tls else '127.0.0.1'}:{self.port}/v1"
        )

    def _accept(self) -> None:
        while True:
            try:
                endpoint, _ = self.listener.accept()
            except OSError:
                return
            self._open.append(endpoint)
            self.connections += 1
            threading.Thread(target=self._serve, args=(endpoint, self.connections), daemon=True).start()

    def _serve(self, endpoint: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, EOFError):
            endpoint.settimeout(DEADLINE_S)
            if self.tls is not None:
                endpoint = self.tls.wrap_socket(endpoint, server_side=True)
            wire = Wire(endpoint, number)
            while self._exchange(wire):
                pass
        with contextlib.suppress(OSError):
            endpoint.shutdown(socket.SHUT_RDWR)
        endpoint.close()

    def _exchange(self, wire: Wire) -> bool:
        head = wire.until(b"\r\n\r\n")
        if self.head_script is not None:
            goes_on = self.head_script(head, wire)
            if goes_on is not None:
                return goes_on
        asked = Asked(head, _body(head, wire), wire.number)
        with self.changed:
            self.log.append(asked)
            self.changed.notify_all()
        return self.script(asked, wire)

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.log) >= count, DEADLINE_S), (
                f"{len(self.log)} < {count}"
            )

    def close(self) -> None:
        self.listener.close()
        for endpoint in self._open:
            with contextlib.suppress(OSError):
                endpoint.shutdown(socket.SHUT_RDWR)
            endpoint.close()


def _body(head: bytes, wire: Wire) -> bytes:
    lower = head.lower()
    if b"\r\ntransfer-encoding: chunked" in lower:
        body = b""
        while size := int(wire.until(b"\r\n").split(b";")[0], 16):
            body += wire.exactly(size)
            wire.exactly(2)
        while wire.until(b"\r\n"):
            pass
        return body
    at = lower.find(b"\r\ncontent-length:")
    return wire.exactly(int(lower[at + 17 :].split(b"\r\n")[0])) if at >= 0 else b""


def sized(
    body: bytes, *, status: bytes = b"200 OK", kind: bytes = b"application/json", more: bytes = b""
) -> bytes:
    """Return a whole answer with a Content-Length."""
    return b"HTTP/1.1 %b\r\ncontent-type: %b\r\n%bcontent-length: %d\r\n\r\n%b" % (
        status,
        kind,
        more,
        len(body),
        body,
    )


def chunks(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """Return pieces as chunks, with the end of the body."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


def always(answer: bytes) -> Script:
    """Return a script that gives everybody the same answer."""

    def script(_: Asked, wire: Wire) -> bool:
        wire.send(answer)
        return True

    return script


def in_two_parts() -> tuple[Script, threading.Event]:
    """Return a script of a stream that begins, and ends once the event is set."""
    more = threading.Event()

    def script(_: Asked, wire: Wire) -> bool:
        wire.send(SSE_HEAD + chunks(event("a"), end=b""))
        assert more.wait(DEADLINE_S)
        wire.send(chunks(event("b", finish=True), DONE))
        return True

    return script, more


COMPLETION = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,'
    b'"completion_tokens":7,"total_tokens":12}}'
)
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(delta: str, *, finish: bool = False) -> bytes:
    """Return one streamed chunk of a completion."""
    reason = b'"stop"' if finish else b"null"
    head = b'data: {"id":"chatcmpl-2","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,'
    return head + b'"delta":{"content":"%b"},"finish_reason":%b}]}\n\n' % (delta.encode(), reason)


USAGE_EVENT = (
    b'data: {"id":"chatcmpl-2","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[],"usage":'
    b'{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\n'
)
DONE = b"data: [DONE]\n\n"
