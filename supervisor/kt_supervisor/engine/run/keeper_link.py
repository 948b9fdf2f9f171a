"""The engine's end of a keeper's control socket: requests one after another, events as they come.

Knows the protocol of `kt_supervisor.keeper` and nothing of instances.
"""

import asyncio
import contextlib
import itertools
import json
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from kt_ledger import unix_socket
from kt_supervisor.keeper import PROTOCOL

ANSWER_TIMEOUT_S = 10.0
AGAIN_S = 0.02
LIMIT_BYTES = 1 << 20


class KeeperGone(Exception):
    """The keeper does not answer, or speaks another protocol."""


class KeeperLink:
    """One connection that said hello.

    `exited` ends with the exit record, or with KeeperGone where the keeper ended without one. `agent_exited` is done
    as soon as the agent's main process was reaped; its tree may still be ending.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        self._reader = reader
        self._writer = writer
        self._answers: deque[asyncio.Future[dict[str, Any]]] = deque()
        self.facts: dict[str, Any] = {}
        self.started: asyncio.Future[None] = loop.create_future()
        self.agent_exited: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.exited.add_done_callback(_looked_at)
        self._ran: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self.on_output: Callable[[], None] = lambda: None
        self.on_disk: Callable[[bool], None] = lambda _low: None

    @classmethod
    async def connect(
        cls, path: Path, *, within_s: float, gives_up: Callable[[], bool] = lambda: False
    ) -> Self:
        """Return a link to the keeper at `path`, once it answers; `follow` must then be run beside it.

        Raises:
            KeeperGone: nobody answers `within_s`, or `gives_up` says that nobody will.
        """
        deadline_s = asyncio.get_running_loop().time() + within_s
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                # Not blocking: where a stopped keeper's queue is full, connect(2) would hold up the whole engine.
                connection.setblocking(False)
                unix_socket.connect(connection, path)
                return cls(*await asyncio.open_connection(sock=connection, limit=LIMIT_BYTES))
            except OSError as error:
                connection.close()
                if gives_up() or asyncio.get_running_loop().time() >= deadline_s:
                    raise KeeperGone(f"no keeper answers at {path}: {error.strerror or error}") from error
            await asyncio.sleep(AGAIN_S)

    async def hello(self) -> dict[str, Any]:
        """Become the keeper's engine; return its status. Raises KeeperGone."""
        facts = await self.ask("hello", protocol=PROTOCOL)
        if not facts.get("ok"):
            raise KeeperGone(f"the keeper refused: {facts.get('error')}")
        self.facts = facts
        if facts.get("phase") not in ("borrowing", "spawning"):
            self._done(self.started)
        if exit_record := facts.get("exit"):
            self._ended(exit_record)
        return facts

    async def ask(self, op: str, **facts: Any) -> dict[str, Any]:
        """Return the keeper's answer to one request. Raises KeeperGone."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers.append(answer)
        try:
            self._writer.write(json.dumps({"op": op, **facts}).encode() + b"\n")
            await self._writer.drain()
            return await asyncio.wait_for(answer, ANSWER_TIMEOUT_S)
        except (OSError, TimeoutError) as error:
            raise KeeperGone(f"the keeper does not answer: {error or 'time is up'}") from error

    async def run(self, command: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """Have a command run beside the agent; return how it ended (the keeper's `ran`). Raises KeeperGone."""
        number = next(self._numbers)
        ran: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._ran[number] = ran
        try:
            answer = await self.ask("run", id=number, timeout_s=timeout_s, **command)
            if not answer.get("ok"):
                raise KeeperGone(f"the keeper refused: {answer.get('error')}")
            return await asyncio.wait_for(ran, timeout_s + ANSWER_TIMEOUT_S)
        except TimeoutError:
            raise KeeperGone("the keeper does not say how the command ended") from None
        finally:
            del self._ran[number]

    async def follow(self) -> None:
        """Take what the keeper says until it ends; run exactly once."""
        try:
            while line := await self._reader.readline():
                message = json.loads(line)
                if "event" in message:
                    self._event(message)
                elif self._answers:
                    self._answer(message)
        except (OSError, ValueError):
            pass  # as an end: what matters is in the Run's folder
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the connection; whoever waits for something is told."""
        self._writer.close()
        while self._answers:
            self._answer(None)
        for ran in self._ran.values():
            if not ran.done():
                ran.set_exception(KeeperGone("the keeper's connection ended"))
        if not self.exited.done():
            self.exited.set_exception(KeeperGone("the keeper's connection ended"))
        self._done(self.started)
        self._done(self.agent_exited)

    async def release(self) -> None:
        """Tell the keeper that everything of its Run is kept; it may go."""
        with contextlib.suppress(KeeperGone):
            await self.ask("release")

    def _answer(self, message: dict[str, Any] | None) -> None:
        answer = self._answers.popleft()
        if answer.done():
            return
        if message is None:
            answer.set_exception(KeeperGone("the keeper's connection ended"))
        else:
            answer.set_result(message)

    def _event(self, message: dict[str, Any]) -> None:
        match message["event"]:
            case "output":
                self.on_output()
            case "disk_low" | "disk_ok":
                self.on_disk(message["event"] == "disk_low")
            case "started":
                self.facts |= message
                self._done(self.started)
            case "ran":
                ran = self._ran.get(message.get("id", 0))
                if ran is not None and not ran.done():
                    ran.set_result(message)
            case "agent_exited":
                self._done(self.agent_exited)
            case "exited":
                self._ended(message)

    def _ended(self, record: dict[str, Any]) -> None:
        self._done(self.started)
        self._done(self.agent_exited)
        if not self.exited.done():
            self.exited.set_result(record)

    @staticmethod
    def _done(future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_result(None)


def _looked_at(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()  # a failure that nobody awaits is no news: the Run's folder is looked at
