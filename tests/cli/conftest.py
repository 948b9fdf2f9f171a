"""A replaying provider in a process of its own, and the `kt` command as users run it."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kt_cli.demo.provider_process import ProviderProcess
from kt_client.blocking import Client
from kt_ledger import unix_socket

REPOSITORY = Path(__file__).resolve().parents[2]
ANSWER_TIMEOUT_S = 60


@dataclass(frozen=True)
class Done:
    """How one command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Kt:
    """The command with a state directory of its own."""

    state: Path

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("KT", "HEKMA"))}
        return {**inherited, "KTESIO_STATE_DIR": str(self.state), **more}

    def __call__(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Done:
        done = subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            timeout=ANSWER_TIMEOUT_S,
            env=self.environment(**(env or {})),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "kt_cli.main", *words]

    @property
    def client(self) -> Client:
        """What prepares and looks where the command is not what the claim is about: each costs a fifth of a second."""
        return Client(self.state)

    def end(self) -> None:
        """Stop the engine, if there was one, and all that it looks after."""
        if (self.state / "engine.sock").exists():
            self.client.engine_stop(everything=True)


@pytest.fixture
def kt(tmp_path: Path) -> Iterator[Kt]:
    """The command over a fresh state directory; whatever it started has ended afterwards."""
    command = Kt(tmp_path / "state")
    yield command
    command.end()


@pytest.fixture(scope="session")
def one_kt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kt]:
    """The command over a state directory that many claims share: an engine takes a second to begin."""
    command = Kt(tmp_path_factory.mktemp("shared") / "state")
    yield command
    command.end()


@pytest.fixture
def shared_kt(one_kt: Kt) -> Iterator[Kt]:
    """The command over a state directory without agents, whose engine may run already."""
    yield one_kt
    for entry in one_kt.client.list()["instances"]:
        one_kt.client.remove(entry["name"], delete=True, force=True)


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[ProviderProcess]:
    with ProviderProcess(REPOSITORY / "fixtures", tmp_path / "provider.log") as running:
        yield running


@pytest.fixture(scope="session")
def shared_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    """A provider for tests that look at answers only, not at the log."""
    log = tmp_path_factory.mktemp("shared") / "provider.log"
    with ProviderProcess(REPOSITORY / "fixtures", log) as running:
        yield running


class Script:
    """A server at an engine's socket that answers each connection with the next of some prepared bytes.

    It stands at the wall between two processes, to say what a healthy engine never says. Which variables are wanted it
    does not know, as an older engine: unless `is_older` is False, that question takes none of the answers.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.heads: list[bytes] = []
        self.is_older = True
        self._server = unix_socket.bind(path)
        self._answers: list[list[bytes]] = []
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def answer(self, *pieces: bytes) -> None:
        self._answers.append(list(pieces))

    def answer_json(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.answer(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(body)), body)

    def close(self) -> None:
        self._left.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while not self._left.is_set():
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                self._play(connection)

    def _play(self, connection: socket.socket) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            data = connection.recv(65536)
            if not data:
                return  # somebody looked whether we are there
            received += data
        if self.is_older and b"/environment?" in received.split(b"\r\n")[0]:
            connection.sendall(
                b"HTTP/1.1 404 X\r\ncontent-length: %d\r\n\r\n" % len(NO_SUCH_CALL) + NO_SUCH_CALL
            )
            return
        self.heads.append(received)
        for piece in self._answers.pop(0) if self._answers else [HANG]:
            if piece == HANG:
                self._left.wait(60)
                return
            try:
                connection.sendall(piece)
            except OSError:
                return  # the client has left


HANG = b"<hang>"
NO_SUCH_CALL = b'{"error": {"code": "no_such_call", "exit_code": 3, "message": "no such call"}}'


@pytest.fixture
def script(kt: Kt) -> Iterator[Script]:
    """A scripted engine for `kt`."""
    running = Script(kt.state / "engine.sock")
    yield running
    running.close()
    (kt.state / "engine.sock").unlink()
