"""The verbs of one agent's life."""

from aiohttp import web

from kt_ledger.store import StoreUnavailable
from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance import configuring
from kt_supervisor.engine.instance.fleet import Fleet


class AgentRoutes:
    """`/v1/agents/NAME/VERB`."""

    def __init__(self, host: Host, fleet: Fleet) -> None:
        self._host = host
        self._fleet = fleet

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        agent = "/v1/agents/{name}"
        return [
            web.post(f"{agent}/start", self._start),
            web.post(f"{agent}/stop", self._stop),
            web.post(f"{agent}/restart", self._restart),
            web.post(f"{agent}/pause", self._pause),
            web.post(f"{agent}/resume", self._resume),
        ]

    async def _start(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        environment, given = requests.environment(body), requests.texts(body, "settings")
        await self._host.ready()
        self._fleet.check_open()
        instance = self._fleet.instance(requests.name(request))
        return requests.answer(await instance.start(environment, configuring.check_overrides(given)))

    async def _restart(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        environment, timeout_s = requests.environment(body), requests.seconds(body)
        await self._host.ready()
        self._fleet.check_open()
        instance = self._fleet.instance(requests.name(request))
        return requests.answer(await instance.restart(environment, timeout_s=timeout_s))

    async def _pause(self, request: web.Request) -> web.Response:
        await self._host.ready()
        return requests.answer(await self._fleet.instance(requests.name(request)).pause())

    async def _resume(self, request: web.Request) -> web.Response:
        await self._host.ready()
        return requests.answer(await self._fleet.instance(requests.name(request)).resume())

    async def _stop(self, request: web.Request) -> web.Response:
        name, timeout_s = requests.name(request), requests.seconds(await requests.body(request))
        try:
            await self._host.ready()
            return requests.answer(await self._fleet.instance(name).stop(timeout_s=timeout_s))
        except StoreUnavailable as away:
            answer = await self._fleet.stop_apart(name, timeout_s=timeout_s)
            notice = f"stopped; the ledger learns of it later: {away}"
            return requests.answer({**answer, "notices": [notice]})
