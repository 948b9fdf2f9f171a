"""The gateway's admin socket: the messages of `kt_ledger.messages` as HTTP over a Unix socket of our own uid only.

Translates; whoever is behind `Listeners` does the work. Never logs a message: they carry keys and tokens.
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from kt_ledger import messages, unix_socket

MAX_MESSAGE_BYTES = 1 << 20


class PortTaken(Exception):
    """Somebody else listens on the port that an instance shall have; nothing was changed."""


class ListenerInvalid(ValueError):
    """A listener message that cannot be served; the message says what was wanted."""


class Listeners(Protocol):
    """What the gateway can be told."""

    def status(self) -> messages.Status:
        """Return who we are and what we hold."""
        ...

    async def put(self, listener: messages.Listener) -> int:
        """Make, or change, a listener; return its port. Raises PortTaken, ListenerInvalid."""
        ...

    async def delete(self, instance_id: str) -> bool:
        """Remove a listener; False where there was none."""
        ...

    def key(self, instance_id: str) -> messages.ListenerKey | None:
        """Return the key of a listener; None where there is no such listener."""
        ...

    def position(self) -> tuple[int, int]:
        """Return how far the journal is written."""
        ...

    async def moved(self) -> None:
        """Wait until the journal has been written to."""
        ...

    async def flush(self) -> None:
        """Write what has only been counted so far."""
        ...

    async def drain(self, timeout_s: float) -> None:
        """Stop accepting, wait for streams under way, and let the process end."""
        ...


class Admin:
    """The server on the admin socket."""

    def __init__(self, listeners: Listeners, *, uid: int, engine_lock: Path) -> None:
        """Compose; `engine_lock` names the process that may ask for keys."""
        self._listeners = listeners
        self._engine_lock = engine_lock
        self._uid = uid
        self._runner: web.AppRunner | None = None

    async def start(self, endpoint: socket.socket) -> None:
        """Serve on a bound Unix socket."""
        application = web.Application(client_max_size=MAX_MESSAGE_BYTES, middlewares=[self._ours_only])
        application.add_routes(
            [
                web.get("/v1/status", self._status),
                web.put("/v1/listeners/{instance}", self._put),
                web.delete("/v1/listeners/{instance}", self._delete),
                web.get("/v1/listeners/{instance}/key", self._key),
                web.get("/v1/progress", self._progress),
                web.post("/v1/flush", self._flush),
                web.post("/v1/drain", self._drain),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.SockSite(self._runner, endpoint).start()

    async def stop(self) -> None:
        """Close the socket and what is open on it."""
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _ours_only(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        endpoint = request.get_extra_info("socket")
        if endpoint is None or not unix_socket.peer_is(endpoint, self._uid):
            return _problem(403, "not_ours", "this socket answers its owner only")
        return await handler(request)

    async def _status(self, _: web.Request) -> web.Response:
        return web.json_response(self._listeners.status().to_json())

    async def _put(self, request: web.Request) -> web.Response:
        try:
            message = await request.json()
            if not isinstance(message, dict):
                raise ListenerInvalid("wanted a JSON object")
            listener = messages.Listener.from_json({**message, "instance_id": request.match_info["instance"]})
            return web.json_response({"port": await self._listeners.put(listener)})
        except PortTaken as taken:
            return _problem(409, "port_taken", str(taken))
        except (KeyError, TypeError, ValueError) as error:
            why = f"missing field {error}" if isinstance(error, KeyError) else str(error)
            return _problem(400, "listener_invalid", f"got a listener that cannot be served: {why}")

    async def _delete(self, request: web.Request) -> web.Response:
        if not await self._listeners.delete(request.match_info["instance"]):
            return _problem(404, "not_found", "no listener of this instance")
        return web.json_response({})

    async def _key(self, request: web.Request) -> web.Response:
        endpoint = request.get_extra_info("socket")
        if endpoint is None or not _is_engine(endpoint, self._engine_lock):
            return _problem(403, "not_the_engine", "a key is told to the engine of this state directory only")
        found = self._listeners.key(request.match_info["instance"])
        if found is None:
            return _problem(404, "not_found", "no listener of this instance")
        return web.json_response(found.to_json())

    async def _progress(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await answer.prepare(request)
        told: tuple[int, int] | None = None
        try:
            while True:
                position = self._listeners.position()
                if position != told:
                    line = json.dumps({"segment": position[0], "offset": position[1]}) + "\n"
                    await answer.write(line.encode())
                    told = position
                else:
                    await self._listeners.moved()
        except (ConnectionResetError, asyncio.CancelledError):
            return answer

    async def _flush(self, _: web.Request) -> web.Response:
        await self._listeners.flush()
        return web.json_response({})

    async def _drain(self, request: web.Request) -> web.Response:
        message: dict[str, Any] = await request.json() if request.can_read_body else {}
        await self._listeners.drain(float(message.get("timeout_s", 30.0)))
        return web.json_response({})


def _is_engine(endpoint: socket.socket, lock: Path) -> bool:
    """Tell whether the peer is the process that wrote itself into the engine's lock.

    Where the system names no peers, as on macOS, the owner's uid has to do; one that we do not see is not the engine.
    """
    if not unix_socket.names_peers():
        return True
    try:
        pid = int(lock.read_bytes())
    except (OSError, ValueError):
        return False
    return unix_socket.peer_pid(endpoint) == pid


def _problem(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"error": code, "message": message}, status=status)
