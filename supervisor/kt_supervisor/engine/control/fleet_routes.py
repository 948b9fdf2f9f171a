"""What is known: registrations, states, usage, calls. Reading only, but for registration and removal."""

import asyncio

from aiohttp import web

from kt_supervisor.engine.control import requests, streams
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.telling import exchange_view, views
from kt_supervisor.engine.telling.following_calls import FollowingCalls, latest_calls
from kt_supervisor.engine.telling.machine_view import MachineView

EXCHANGES = 100
MOST_EXCHANGES = 100_000
HIGHEST_NUMBER = 2**63 - 1


class FleetRoutes:
    """`/v1/agents`, `/v1/usage`."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts
        self._machine = MachineView(parts.files)

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
        # Imported when it is needed: it brings pydantic, and an engine that comes back must not wait for that.
        from kt_supervisor.engine.control import registration

        adapter = await asyncio.to_thread(registration.snapshot, body)
        answer = await self._fleet.register(requests.text(body, "name"), adapter)
        return requests.answer(answer, status=201)

    async def _list(self, _: web.Request) -> web.Response:
        everyone = await self._read(None)
        document = views.fleet(everyone, now_ns=self._parts.clock.wall_ns())
        return requests.answer(await self._machine.add_to_all(document, everyone))

    async def _usage_of_all(self, request: web.Request) -> web.Response:
        if requests.is_set(request, "removed"):
            await self._host.ready()
            return requests.answer(views.used_by_removed(await self._fleet.removed()))
        return requests.answer(views.used_by_all(await self._read(None)))

    async def _show(self, request: web.Request) -> web.Response:
        [known] = await self._read(requests.name(request))
        document = views.shown(known, now_ns=self._parts.clock.wall_ns())
        return requests.answer(await self._machine.add_to_one(document, known))

    async def _usage(self, request: web.Request) -> web.Response:
        [known] = await self._read(requests.name(request))
        return requests.answer(views.used(known))

    async def _remove(self, request: web.Request) -> web.Response:
        delete = request.query.get("home", "retain") == "delete"
        await self._host.ready()
        answer = await self._fleet.forget(
            requests.name(request), delete=delete, force=requests.is_set(request, "force")
        )
        return requests.answer(answer)

    async def _exchanges(self, request: web.Request) -> web.StreamResponse:
        limit = requests.whole_number(request, "limit", default=EXCHANGES, lowest=1, highest=MOST_EXCHANGES)
        await self._host.ready()
        instance = self._fleet.instance(requests.name(request))
        await self._fleet.catch_up(instance.name)
        if requests.is_set(request, "follow"):
            return await self._follow_calls(request, instance, limit)
        rows = await latest_calls(self._parts.writer, instance.id, limit=limit)
        return requests.answer(exchange_view.exchanges([(row.exchange, row.event) for row in rows]))

    async def _follow_calls(self, request: web.Request, instance: Instance, limit: int) -> web.StreamResponse:
        after = None
        if "after" in request.query:
            after = requests.whole_number(request, "after", default=0, lowest=0, highest=HIGHEST_NUMBER)
        following = FollowingCalls(self._parts.writer, instance, limit=limit, after=after)
        return await streams.ndjson(request, following.batches())

    async def _read(self, name: str | None) -> list[views.Known]:
        await self._host.ready()
        await self._fleet.catch_up(name)
        return await self._fleet.known(name)
