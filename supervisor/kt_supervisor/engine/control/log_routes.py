"""`/v1/agents/NAME/logs`: what an agent printed, and what the engine says about it."""

from aiohttp import web

from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.fleet import Fleet
from kt_supervisor.engine.following import Following
from kt_supervisor.engine.parts import Parts


class LogRoutes:
    """NDJSON, line by line."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        return [web.get("/v1/agents/{name}/logs", self._logs)]

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        await self._host.ready()
        instance = self._fleet.instance(requests.name(request))
        following = Following(self._parts.files, self._parts.writer, instance)
        answer = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await answer.prepare(request)
        try:
            async for batch in following.batches(follow=requests.is_set(request, "follow")):
                await answer.write(batch)
            await answer.write_eof()
        except ConnectionError:
            pass  # the reader has seen enough
        return answer
