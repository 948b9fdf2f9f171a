"""The control API: HTTP with JSON over the engine's socket, for our own uid only. Translates; decides nothing."""

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from aiohttp import web

from kt_ledger import unix_socket
from kt_ledger.store import StoreUnavailable
from kt_supervisor.engine import configuration, exchange_view, problems, views
from kt_supervisor.engine.fleet import Fleet
from kt_supervisor.engine.following import Following
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import USAGE, Refused

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 16 << 20
"""The caller's environment travels in a body; Linux allows a process some 2 MB of it (execve(2), ARG_MAX)."""
STOP_TIMEOUT_S = 30.0
EXCHANGES = 100


class Host(Protocol):
    """What the control API asks of the engine itself."""

    async def describe(self) -> dict[str, Any]:
        """Return the document of `GET /v1/engine`."""
        ...

    async def ready(self) -> None:
        """Return once the first attempt at the ledger is over. Raises StoreUnavailable where it failed."""
        ...

    async def end_everything(self) -> list[str]:
        """Stop all agents and the gateway; return what could not be stopped."""
        ...

    def mark_stopped(self) -> None:
        """Leave the marker that keeps keepers quiet."""
        ...

    def end(self) -> None:
        """Have the engine end, once the answer has left."""
        ...


class Control:
    """The server."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts, *, uid: int) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts
        self._uid = uid
        self._runner: web.AppRunner | None = None

    async def start(self, endpoint: socket.socket) -> None:
        """Serve on a bound Unix socket."""
        application = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._guard])
        agent = "/v1/agents/{name}"
        application.add_routes(
            [
                web.get("/v1/engine", self._engine),
                web.post("/v1/engine/stop", self._engine_stop),
                web.get("/v1/usage", self._usage_of_all),
                web.post("/v1/agents", self._register),
                web.get("/v1/agents", self._list),
                web.get(agent, self._show),
                web.delete(agent, self._remove),
                web.get(f"{agent}/usage", self._usage),
                web.post(f"{agent}/start", self._start),
                web.post(f"{agent}/stop", self._stop),
                web.get(f"{agent}/logs", self._logs),
                web.get(f"{agent}/config", self._config_get),
                web.put(f"{agent}/config", self._config_set),
                web.delete(f"{agent}/config", self._config_unset),
                web.get(f"{agent}/exchanges", self._exchanges),
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

    # -- the engine --------------------------------------------------------------------------------------------
    async def _engine(self, _: web.Request) -> web.Response:
        return web.json_response(await self._host.describe())

    async def _engine_stop(self, request: web.Request) -> web.StreamResponse:
        everything = bool((await _body(request)).get("all"))
        await asyncio.to_thread(self._host.mark_stopped)
        notices = await self._host.end_everything() if everything else []
        answer = web.json_response({"stopped": True, "all": everything, "notices": notices})
        await answer.prepare(request)
        await answer.write_eof()
        self._host.end()
        return answer

    # -- the fleet ---------------------------------------------------------------------------------------------
    async def _register(self, request: web.Request) -> web.Response:
        body = await _body(request)
        await self._host.ready()
        answer = await self._fleet.register(_text(body, "name"), _text(body, "adapter"))
        return web.json_response(answer, status=201)

    async def _list(self, _: web.Request) -> web.Response:
        everyone = await self._read(None)
        return web.json_response(views.fleet(everyone, now_ns=self._parts.clock.wall_ns()))

    async def _usage_of_all(self, _: web.Request) -> web.Response:
        return web.json_response(views.used_by_all(await self._read(None)))

    async def _show(self, request: web.Request) -> web.Response:
        [known] = await self._read(_name(request))
        return web.json_response(views.shown(known, now_ns=self._parts.clock.wall_ns()))

    async def _usage(self, request: web.Request) -> web.Response:
        [known] = await self._read(_name(request))
        return web.json_response(views.used(known))

    async def _read(self, name: str | None) -> list[views.Known]:
        await self._host.ready()
        await self._fleet.catch_up(name)
        return await self._fleet.known(name)

    # -- one agent ---------------------------------------------------------------------------------------------
    async def _start(self, request: web.Request) -> web.Response:
        environment = _environment(await _body(request))
        await self._host.ready()
        return web.json_response(await self._fleet.instance(_name(request)).start(environment))

    async def _stop(self, request: web.Request) -> web.Response:
        timeout_s = _seconds(await _body(request))
        try:
            await self._host.ready()
            return web.json_response(await self._fleet.instance(_name(request)).stop(timeout_s=timeout_s))
        except StoreUnavailable as away:
            answer = await self._fleet.stop_without_ledger(_name(request), timeout_s=timeout_s)
            return web.json_response(
                {**answer, "notices": [f"stopped; the ledger learns of it later: {away}"]}
            )

    async def _remove(self, request: web.Request) -> web.Response:
        delete = request.query.get("home", "retain") == "delete"
        force = request.query.get("force", "0") == "1"
        await self._host.ready()
        return web.json_response(await self._fleet.forget(_name(request), delete=delete, force=force))

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        await self._host.ready()
        following = Following(self._parts.files, self._parts.writer, self._fleet.instance(_name(request)))
        answer = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await answer.prepare(request)
        try:
            async for batch in following.batches(follow=request.query.get("follow") == "1"):
                await answer.write(batch)
            await answer.write_eof()
        except ConnectionError:
            pass  # the reader has seen enough
        return answer

    async def _exchanges(self, request: web.Request) -> web.Response:
        limit = request.query.get("limit", str(EXCHANGES))
        if not limit.isdecimal() or not 0 < int(limit) <= 100_000:
            raise Refused(f"got limit={limit}, wanted 1 to 100000", code="bad_request", exit_code=USAGE)
        await self._host.ready()
        instance = self._fleet.instance(_name(request))
        await self._fleet.catch_up(instance.name)
        calls, events = await self._parts.writer.do(
            lambda store: (
                store.recent_exchanges(instance.id, limit=int(limit)),
                store.recent_events(instance.id, limit=4 * int(limit)),
            )
        )
        return web.json_response(exchange_view.exchanges(calls, events))

    # -- configuration -----------------------------------------------------------------------------------------
    async def _config_get(self, request: web.Request) -> web.Response:
        await self._host.ready()
        name = self._fleet.instance(_name(request)).name
        key, reveal = request.query.get("key"), request.query.get("reveal") == "1"
        environment = _environment(await _body(request)) if reveal else None
        document = await asyncio.to_thread(
            configuration.get, self._parts.files, name, key=key, reveal_with=environment
        )
        return web.json_response(document)

    async def _config_set(self, request: web.Request) -> web.Response:
        body = await _body(request)
        await self._host.ready()
        document = await configuration.set_value(
            self._parts.files,
            self._fleet.instance(_name(request)),
            key=_text(body, "key"),
            value=_text(body, "value"),
            environment=_environment(body),
        )
        return web.json_response(document)

    async def _config_unset(self, request: web.Request) -> web.Response:
        await self._host.ready()
        instance = self._fleet.instance(_name(request))
        document = await configuration.unset(self._parts.files, instance, key=request.query.get("key", ""))
        return web.json_response(document)


def _name(request: web.Request) -> str:
    return request.match_info["name"]


async def _body(request: web.Request) -> dict[str, Any]:
    if not request.can_read_body:
        return {}
    try:
        # Variables may hold any bytes: they travel as surrogates (PEP 383).
        text = (await request.read()).decode("utf-8", "surrogateescape")
        body = json.loads(text)
    except ValueError as error:
        raise Refused(f"got a body that is no JSON ({error})", code="bad_request", exit_code=USAGE) from error
    if not isinstance(body, dict):
        raise Refused("got a body that is no JSON object, wanted one", code="bad_request", exit_code=USAGE)
    return body


def _text(body: Mapping[str, Any], field: str) -> str:
    value = body.get(field)
    if not isinstance(value, str):
        raise Refused(f"got no text in {field!r}, wanted one", code="bad_request", exit_code=USAGE)
    return value


def _environment(body: Mapping[str, Any]) -> dict[str, str]:
    given = body.get("env") or {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise Refused(
            "got an 'env' that is no object of texts, wanted one", code="bad_request", exit_code=USAGE
        )
    return given


def _seconds(body: Mapping[str, Any]) -> float:
    value = body.get("timeout_s", STOP_TIMEOUT_S)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 86_400:
        raise Refused(
            "got a 'timeout_s' that is no number from 0 to 86400", code="bad_request", exit_code=USAGE
        )
    return float(value)


def _answer(problem: problems.Problem) -> web.Response:
    return web.json_response(problem.to_json(), status=problem.status)
