"""`AsyncClient`: the same verbs, each to be awaited. Standard library alone; nothing is kept between two calls."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from kt_client import asking, errors, ignition, peer, variables
from kt_client.errors import EngineAway, KtError
from kt_client.link import CONNECT_TIMEOUT_S, PORTION_BYTES
from kt_client.variables import Offer
from kt_client.verbs import Verbs
from kt_client.wire import Conversation, Request
from kt_ledger import unix_socket


class AsyncClient(Verbs[Awaitable[dict[str, Any]], AsyncIterator[dict[str, Any]]]):
    """The verbs, asynchronous."""

    async def perform(self, request: Request) -> Any:
        """Return the answer to a request of one's own making; the verbs all come down to this."""
        if (known := asking.without_engine(request, self.files)) is not None:
            return known
        try:
            return await self._document(request)
        except KtError as error:
            if request.away is not None and isinstance(error, EngineAway):
                return request.away
            if not self.start_engine or not asking.is_asked_again(request, error):
                raise
        await asyncio.to_thread(ignition.ensure, self.files)
        return await self._document(request)

    async def lines(self, request: Request) -> AsyncIterator[Any]:
        """Yield the lines of the answer to a request of one's own making."""
        if (known := asking.without_engine(request, self.files)) is not None:
            for line in known:
                yield line
            return
        begun = False
        try:
            async for line in self._stream(request):
                begun = True
                yield line
            return
        except EngineAway:
            if begun or not self.start_engine:
                raise
        await asyncio.to_thread(ignition.ensure, self.files)
        async for line in self._stream(request):
            yield line

    async def _offer(self, offer: Offer) -> dict[str, Any]:
        try:
            told = await self.perform(offer.question)
        except KtError as error:
            if not variables.is_older(error):
                raise
            return await self._ask(offer.with_all())
        return variables.told_of(await self._ask(offer.with_chosen(told)), offer.remarks(told))

    def _ask(self, request: Request) -> Awaitable[dict[str, Any]]:
        return self.perform(request)

    def _follow(self, request: Request) -> AsyncIterator[dict[str, Any]]:
        return self.lines(request)

    def _work(self, work: Callable[[], dict[str, Any]]) -> Awaitable[dict[str, Any]]:
        return asyncio.to_thread(work)

    async def _stream(self, request: Request) -> AsyncIterator[Any]:
        conversation = Conversation(lines=True)
        async with self._asked(request) as connection:
            while not conversation.ended:
                for line in conversation.receive(await _received(connection, request.timeout_s)):
                    yield line
        self._tell_version(conversation)
        conversation.document()

    def _tell_version(self, conversation: Conversation) -> None:
        if self.hears_version is not None and conversation.version is not None:
            self.hears_version(conversation.version)

    async def _document(self, request: Request) -> Any:
        conversation = Conversation()
        async with self._asked(request) as connection:
            while not conversation.ended:
                conversation.receive(await _received(connection, request.timeout_s))
        self._tell_version(conversation)
        return conversation.document()

    @contextlib.asynccontextmanager
    async def _asked(self, request: Request) -> AsyncIterator[socket.socket]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CONNECT_TIMEOUT_S)
            try:
                # In a thread: a full queue makes it wait, and a long path is a short name for this moment only.
                await asyncio.to_thread(unix_socket.connect, connection, self.files.engine_socket)
            except OSError as error:
                raise errors.unreachable(error, self.files.engine_socket) from error
            peer.refuse_stopped(connection)
            connection.setblocking(False)
            loop = asyncio.get_running_loop()
            try:
                await asyncio.wait_for(loop.sock_sendall(connection, request.encoded()), request.timeout_s)
            except (BrokenPipeError, ConnectionResetError):
                pass  # an engine that refuses a large body early has an answer waiting
            except OSError as error:  # TimeoutError is one
                raise errors.lost(error) from error
            yield connection


async def _received(connection: socket.socket, timeout_s: float | None) -> bytes:
    loop = asyncio.get_running_loop()
    try:
        return await asyncio.wait_for(loop.sock_recv(connection, PORTION_BYTES), timeout_s)
    except OSError as error:
        raise errors.lost(error) from error
