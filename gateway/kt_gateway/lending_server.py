"""The gateway's lend socket: hands duplicates of listening sockets to the keepers of live Runs (`kt_ledger.lending`).

A borrower keeps its connection for as long as it uses the socket; it is closed by us when the listener goes.
"""

import asyncio
import json
import socket
from collections.abc import Callable

from kt_ledger import lending, unix_socket

ASK_TIMEOUT_S = 5.0


class LendingServer:
    """Lends what `find` finds."""

    def __init__(self, find: Callable[[str], socket.socket | None], *, uid: int) -> None:
        """Take the way to an instance's bound socket (None: there is no such listener)."""
        self._find = find
        self._uid = uid
        self._borrowers: dict[str, set[socket.socket]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._endpoint: socket.socket | None = None

    def start(self, endpoint: socket.socket) -> None:
        """Serve on a bound Unix socket."""
        endpoint.setblocking(False)
        self._endpoint = endpoint
        self._spawn(self._accept(endpoint))

    async def stop(self) -> None:
        """Stop lending; borrowers see the end of their connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._endpoint is not None:
            self._endpoint.close()

    def recall(self, instance_id: str) -> None:
        """Tell the borrowers of an instance's socket, by the end of their connections, that its listener is gone."""
        for borrower in self._borrowers.pop(instance_id, set()):
            borrower.shutdown(socket.SHUT_RDWR)

    def _spawn(self, work: "asyncio.coroutines.Coroutine[None, None, None]") -> None:  # type: ignore[name-defined]
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, endpoint: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(endpoint)
            self._spawn(self._serve(connection))

    async def _serve(self, connection: socket.socket) -> None:
        with connection:
            if not unix_socket.peer_is(connection, self._uid):
                return
            try:
                instance_id = await asyncio.wait_for(_question(connection), ASK_TIMEOUT_S)
                listener = self._find(instance_id)
                if listener is None:
                    lending.refuse(connection, f"no listener of instance {instance_id}")
                    return
                lending.lend(connection, listener)
                self._borrowers.setdefault(instance_id, set()).add(connection)
                await _end_of(connection)
            except (OSError, ValueError, TimeoutError) as error:
                try:
                    lending.refuse(connection, f"got no question that can be answered: {error}")
                except OSError:
                    pass  # the borrower has left
            finally:
                for borrowers in self._borrowers.values():
                    borrowers.discard(connection)


async def _question(connection: socket.socket) -> str:
    loop = asyncio.get_running_loop()
    line = b""
    while not line.endswith(b"\n"):
        data = await loop.sock_recv(connection, lending.MAX_LINE_BYTES)
        line += data
        if not data or len(line) > lending.MAX_LINE_BYTES:
            raise ValueError("wanted one line of JSON")
    question = json.loads(line)
    if (
        not isinstance(question, dict)
        or question.get("op") != "lend"
        or not isinstance(question.get("instance"), str)
    ):
        raise ValueError('wanted {"op": "lend", "instance": ID}')
    return str(question["instance"])


async def _end_of(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while await loop.sock_recv(connection, 4096):
        pass
