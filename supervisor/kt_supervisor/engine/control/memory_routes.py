"""`/v1/agents/NAME/memory`: what is attached, attaching and detaching."""

from aiohttp import web

from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.instance.memory import Memories
from kt_supervisor.engine.parts import Parts


class MemoryRoutes:
    """`show`, `attach`, `detach`."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._memories = Memories(parts.files, parts.writer)

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        path = "/v1/agents/{name}/memory"
        return [web.get(path, self._show), web.put(path, self._attach), web.delete(path, self._detach)]

    async def _show(self, request: web.Request) -> web.Response:
        await self._host.ready()
        return requests.answer(await self._memories.show(self._fleet.instance(requests.name(request))))

    async def _attach(self, request: web.Request) -> web.Response:
        kind = requests.text(await requests.body(request), "kind")
        await self._host.ready()
        instance = self._fleet.instance(requests.name(request))
        return requests.answer(await self._memories.attach(instance, kind))

    async def _detach(self, request: web.Request) -> web.Response:
        await self._host.ready()
        return requests.answer(await self._memories.detach(self._fleet.instance(requests.name(request))))
