"""`/v1/agents/NAME/render`: what the next start would run. Changes nothing, so nobody's lock is taken."""

import asyncio

from aiohttp import web

from kt_ledger.records import LIVE_STATES
from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run import previewing
from kt_supervisor.engine.telling import launch_view


class RenderRoutes:
    """`render`: it carries its caller's environment, as a start does."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        return [web.post("/v1/agents/{name}/render", self._render)]

    async def _render(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        environment, reveal = requests.environment(body), body.get("reveal") is True
        await self._host.ready()
        instance = self._fleet.instance(requests.name(request))
        row, current = await instance.row(), instance.current
        run = current.run if current is not None and row.state in LIVE_STATES else None
        found = await asyncio.to_thread(
            previewing.preview,
            self._parts.files,
            row,
            entries=lambda: self._parts.settings.for_a_fresh_start(row),
            environment=environment,
            run=run,
        )
        return requests.answer(launch_view.document(row.name, str(row.state), found, reveal=reveal))
