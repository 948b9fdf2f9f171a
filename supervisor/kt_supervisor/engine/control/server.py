"""The server: who may ask, and how a refusal is told. The routes are in the modules beside this one."""

import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from aiohttp import web

from kt_ledger import unix_socket
from kt_supervisor.engine import problems
from kt_supervisor.engine.problems import USAGE

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 16 << 20
"""The caller's environment travels in a body; Linux allows a process some 2 MB of it (execve(2), ARG_MAX)."""


class Group(Protocol):
    """Routes that belong together."""

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        ...


class Control:
    """Serves routes on a Unix socket, for our own uid only."""

    def __init__(self, groups: Sequence[Group], *, uid: int) -> None:
        self._groups = groups
        self._uid = uid
        self._runner: web.AppRunner | None = None

    async def start(self, endpoint: socket.socket) -> None:
        """Serve on a bound Unix socket."""
        application = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._guard])
        for group in self._groups:
            application.add_routes(group.routes())
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.SockSite(self._runner, endpoint).start()

    async def stop(self) -> None:
        """Close the socket and what is open on it."""
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        endpoint = request.get_extra_info("socket")
        if endpoint is None or not unix_socket.peer_is(endpoint, self._uid):
            return _answer(problems.Problem(403, "not_ours", 1, "this socket answers its owner only"))
        try:
            return await handler(request)
        except web.HTTPException as error:
            said = f"got {request.method} {request.path}, wanted a call of the control API: {error.reason}"
            return _answer(problems.Problem(error.status, "no_such_call", USAGE, said))
        except Exception as error:
            problem = problems.of(error)
            if problem is None:
                logger.exception("%s %s failed", request.method, request.path)
                said = f"the engine failed at {request.method} {request.path}: {type(error).__name__}; see engine.log"
                problem = problems.Problem(500, "internal", 1, said)
            return _answer(problem)


def _answer(problem: problems.Problem) -> web.Response:
    return web.json_response(problem.to_json(), status=problem.status)
