"""A real gateway process with its own state directory, its admin socket, its journal, and plain clients for it."""

import http.client
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.gateway.mitm.provider import Provider

from kt_ledger import journal, layout, unix_socket

DEADLINE_S = 20.0


def eventually[Value](look: Callable[[], Value], *, within_s: float = DEADLINE_S) -> Value:
    """Return the first true value of `look`, looked at whenever there is time."""
    deadline = time.monotonic() + within_s
    while not (value := look()):
        assert time.monotonic() < deadline, f"not within {within_s} s: {look}"
        select.select([], [], [], 0.005)
    return value


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=DEADLINE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        unix_socket.connect(self.sock, self._path)


class Client:
    """A raw client of a listener."""

    def __init__(self, port: int, data: bytes = b"") -> None:
        self.endpoint = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        self.buffer = b""
        if data:
            self.send(data)

    def send(self, data: bytes) -> None:
        self.endpoint.sendall(data)

    def until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            data = self.endpoint.recv(1 << 16)
            if not data:
                raise EOFError(self.buffer)
            self.buffer += data
        found, _, self.buffer = self.buffer.partition(mark)
        return found + mark

    def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            data = self.endpoint.recv(1 << 16)
            if not data:
                raise EOFError(self.buffer)
            self.buffer += data
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def rest(self) -> tuple[bytes, str]:
        """Read to the end; return (bytes, "end" or "reset")."""
        data, self.buffer = self.buffer, b""
        while True:
            try:
                more = self.endpoint.recv(1 << 16)
            except ConnectionResetError:
                return data, "reset"
            if not more:
                return data, "end"
            data += more

    def answer(self) -> tuple[bytes, bytes]:
        """Read one sized or chunked answer; return (head, body without framing)."""
        head = self.until(b"\r\n\r\n")
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            body = b""
            while size := int(self.until(b"\r\n"), 16):
                body += self.exactly(size)
                self.exactly(2)
            while self.until(b"\r\n") != b"\r\n":
                pass
            return head, body
        at = lower.find(b"content-length: ")
        return head, self.exactly(int(lower[at + 16 :].split(b"\r\n")[0])) if at >= 0 else b""

    def reset(self) -> None:
        self.endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.endpoint.close()

    def close(self) -> None:
        self.endpoint.close()


class Gateway:
    """The process."""

    def __init__(self, state: Path, *arguments: str, **environment: str) -> None:
        self.files = layout.StateLayout(state).gateway
        self.log = state.parent / f"{state.name}.stderr"
        command = [sys.executable, "-m", "kt_addons", "--state-dir", str(state), *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, env={**os.environ, **environment})

    def started(self) -> "Gateway":
        """Wait until it answers."""

        def answers() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            try:
                return bool(self.ask("GET", "/v1/status")[1]["pid"] == self.process.pid)
            except OSError:
                return False

        eventually(answers)
        return self

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        connection = UnixConnection(self.files.admin)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def records(self, type_: int | None = None) -> list[journal.Record]:
        """Read all of the journal."""
        return [record for record in self._records() if type_ in (None, record.type)]

    def _records(self) -> Iterator[journal.Record]:
        for folder in sorted(self.files.journals.glob("*")):
            for path in sorted(folder.glob("*.ktj")):
                for found in journal.read(path.read_bytes()):
                    assert isinstance(found, journal.Record), found
                    yield found

    def pid_alive(self) -> bool:
        return self.process.poll() is None

    def rss_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> int:
        """End it as an operator would; return the exit code."""
        self.process.terminate()
        return self.process.wait(DEADLINE_S)

    def close(self) -> None:
        """Make sure that it is gone."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE_S)


class Lane:
    """A listener on a free port, in front of a provider."""

    def __init__(
        self, gateway: Gateway, provider: Provider, instance: str, upstream: str, **fields: Any
    ) -> None:
        self.gateway = gateway
        self.provider = provider
        self.instance = instance
        self.upstream = upstream
        self.token = f"token-of-{instance}"
        self.port = 0
        self.put(**fields)

    def put(self, **fields: Any) -> None:
        """Send the listener, changed as told."""
        grants = [{"run_id": f"run-of-{self.instance}", "token": self.token}]
        message = {"name": "agent", "port": self.port, "upstream": self.upstream, "grants": grants, **fields}
        status, answer = self.gateway.ask("PUT", f"/v1/listeners/{self.instance}", message)
        assert status == 200, answer
        self.port = answer["port"]

    def client(self, data: bytes = b"") -> Client:
        return Client(self.port, data)

    def post(
        self,
        body: bytes = b'{"model":"m-1"}',
        *,
        path: str = "/v1/chat/completions",
        more: bytes = b"",
        start: str = "",
    ) -> bytes:
        """Return the bytes of a POST with the token in its path."""
        line = f"POST {start or '/' + self.token}{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n".encode()
        return line + more + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    def get(self, path: str, *, method: str = "GET", more: bytes = b"") -> bytes:
        """Return the bytes of a request without a body, with the token in its path."""
        return (
            f"{method} /{self.token}{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n".encode()
            + more
            + b"\r\n"
        )

    def records(self, type_: int) -> list[dict[str, Any]]:
        """Return the fields of the records of a type that are ours."""
        return [r.fields for r in self.gateway.records(type_) if r.fields.get("instance") == self.instance]

    def wait_records(self, type_: int, count: int = 1) -> list[dict[str, Any]]:
        """Wait until there are `count` records of a type; return their fields."""
        eventually(lambda: len(self.records(type_)) >= count)
        found = self.records(type_)
        assert len(found) == count, found
        return found

    def close_record(self) -> dict[str, Any]:
        """Wait for the one close record."""
        return self.wait_records(journal.CLOSE)[0]
