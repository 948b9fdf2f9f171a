"""What is known: registrations, states, usage, calls. Reading only, but for registration and removal."""

import asyncio

from aiohttp import web

from kt_supervisor.engine import exchange_view, views
from kt_supervisor.engine.control import registration, requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.fleet import Fleet
from kt_supervisor.engine.parts import Parts

EXCHANGES = 100
MOST_EXCHANGES = 100_000


class FleetRoutes:
    """`/v1/agents`, `/v1/usage`."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        agent = "/v1/agents/{name}"
        return [
            web.get("/v1/usage", self._usage_of_all),
            web.post("/v1/agents", self._register),
            web.get("/v1/agents", self._list),
            web.get(agent, self._show),
            web.delete(agent, self._remove),
            web.get(f"{agent}/usage", self._usage),
            web.get(f"{agent}/exchanges", self._exchanges),
        ]

    async def _register(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        await self._host.ready()
        adapter = await asyncio.to_thread(registration.snapshot, body)
        answer = await self._fleet.register(requests.text(body, "name"), adapter)
        return web.json_response(answer, status=201)

    async def _list(self, _: web.Request) -> web.Response:
        everyone = await self._read(None)
        return web.json_response(views.fleet(everyone, now_ns=self._parts.clock.wall_ns()))

    async def _usage_of_all(self, _: web.Request) -> web.Response:
        return web.json_response(views.used_by_all(await self._read(None)))

    async def _show(self, request: web.Request) -> web.Response:
        [known] = await self._read(requests.name(request))
        return web.json_response(views.shown(known, now_ns=self._parts.clock.wall_ns()))

    async def _usage(self, request: web.Request) -> web.Response:
        [known] = await self._read(requests.name(request))
        return web.json_response(views.used(known))

    async def _remove(self, request: web.Request) -> web.Response:
        delete = request.query.get("home", "retain") == "delete"
        await self._host.ready()
        answer = await self._fleet.forget(
            requests.name(request), delete=delete, force=requests.is_set(request, "force")
        )
        return web.json_response(answer)

    async def _exchanges(self, request: web.Request) -> web.Response:
        limit = requests.whole_number(request, "limit", default=EXCHANGES, lowest=1, highest=MOST_EXCHANGES)
        await self._host.ready()
        instance = self._fleet.instance(requests.name(request))
        await self._fleet.catch_up(instance.name)
        calls, events = await self._parts.writer.do(
            lambda store: (
                store.recent_exchanges(instance.id, limit=limit),
                store.recent_events(instance.id, limit=4 * limit),
            )
        )
        return web.json_response(exchange_view.exchanges(calls, events))

    async def _read(self, name: str | None) -> list[views.Known]:
        await self._host.ready()
        await self._fleet.catch_up(name)
        return await self._fleet.known(name)
