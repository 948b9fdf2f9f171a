"""The server: whom it asks who may ask, and how a refusal is told. The routes are in the modules beside this one."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from aiohttp import web

from kt_ledger import unix_socket
from kt_ledger.exit_codes import USAGE
from kt_ledger.version import VERSION
from kt_supervisor.engine import problems

logger = logging.getLogger(__name__)

VERSION_HEADER = "kt-version"
STREAMS = "streams"
LOOK_S = 0.02
QUIET_LOOKS = 5
MAX_BODY_BYTES = 16 << 20
"""The caller's environment travels in a body; Linux allows a process some 2 MB of it (execve(2), ARG_MAX)."""


class Group(Protocol):
    """Routes that belong together."""

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        ...


class Judge(Protocol):
    """Who of our own uid may ask what."""

    async def refusal(self, request: web.Request, endpoint: socket.socket) -> problems.Problem | None:
        """Return why a call is refused; None where it is not."""
        ...


class Control:
    """Serves routes on a Unix socket, for our own uid only."""

    def __init__(
        self, groups: Sequence[Group], *, uid: int, judge: Judge, clean: Callable[[str], str] = str
    ) -> None:
        """Serve these routes; `clean` takes what must not be shown out of the sentence of a refusal."""
        self._groups = groups
        self._uid = uid
        self._judge = judge
        self._clean = clean
        self._runner: web.AppRunner | None = None
        self._under_way = 0
        self._orders = 0

    async def start(self, endpoint: socket.socket) -> None:
        """Serve on a bound Unix socket."""
        application = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._guard])
        for group in self._groups:
            application.add_routes(group.routes())
        application.on_response_prepare.append(self._prepare)
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await self.listen(endpoint)

    async def listen(self, endpoint: socket.socket) -> None:
        """Serve on another bound socket as well: the one that is there may have lost its name."""
        assert self._runner is not None
        await web.SockSite(self._runner, endpoint).start()

    async def finish_orders(self, *, within_s: float, leaving: int) -> bool:
        """Return once no call that changes something is under way but `leaving` of them; False after `within_s`.

        Everybody is still served meanwhile, new orders included: a stop may take half a minute, and nobody else should
        find no engine for as long.
        """
        return await _quiet(lambda: self._orders <= leaving, within_s=within_s, looks=1)

    async def finish(self, *, within_s: float, leaving: int) -> bool:
        """Return once no call is under way but `leaving` of them; False where some are after `within_s`.

        Call it once nobody can find the socket any more. Whoever connected before that is still heard: the queue is
        emptied, and a caller that has connected is given a moment to say what it wants.
        """
        return await _quiet(lambda: self._under_way <= leaving, within_s=within_s, looks=QUIET_LOOKS)

    async def stop(self) -> None:
        """Close the socket and what is open on it."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _prepare(self, request: web.Request, answer: web.StreamResponse) -> None:
        answer.headers[VERSION_HEADER] = VERSION
        if not isinstance(answer, web.Response):
            # Followers read for as long as there is something to read: nobody waits for them.
            request[STREAMS] = True
            self._under_way -= 1

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        endpoint = request.get_extra_info("socket")
        if endpoint is None or not unix_socket.peer_is(endpoint, self._uid):
            return _answer(problems.Problem(403, "not_ours", 1, "this socket answers its owner only"))
        self._under_way += 1
        self._orders += request.method != "GET"
        try:
            if refused := await self._judge.refusal(request, endpoint):
                return _answer(refused)
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
            return _answer(replace(problem, message=self._clean(problem.message)))
        finally:
            self._under_way -= 0 if STREAMS in request else 1
            self._orders -= request.method != "GET"


async def _quiet(is_quiet: Callable[[], bool], *, within_s: float, looks: int) -> bool:
    ends_s = asyncio.get_running_loop().time() + within_s
    seen = 0
    while seen < looks:
        await asyncio.sleep(LOOK_S)
        if asyncio.get_running_loop().time() > ends_s:
            return False
        seen = seen + 1 if is_quiet() else 0
    return True


def _answer(problem: problems.Problem) -> web.Response:
    return web.json_response(problem.to_json(), status=problem.status)
