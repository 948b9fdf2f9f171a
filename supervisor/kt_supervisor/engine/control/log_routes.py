"""`/v1/agents/NAME/logs`: what an agent printed, and what the engine says about it."""

from aiohttp import web

from kt_supervisor.engine.control import requests, streams
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.output.beginning import Query
from kt_supervisor.engine.output.following import Following
from kt_supervisor.engine.output.positions import Position
from kt_supervisor.engine.output.reading import EVERYTHING
from kt_supervisor.engine.parts import Parts

MOST_LINES = 10_000_000
LATEST_NS = 1 << 62


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
        wanted = query(request)
        await self._host.ready()
        instance = self._fleet.instance(requests.name(request))
        batches = Following(self._parts.files, self._parts.writer, instance, wanted).batches()
        return await streams.ndjson(request, await streams.from_first(batches))


def query(request: web.Request) -> Query:
    """Return what a request wants to read. Raises Refused, PositionUnreadable."""
    chosen = frozenset(request.query.getall("stream", []))
    if chosen - EVERYTHING:
        raise requests.unusable(f"got stream={min(chosen - EVERYTHING)[:40]}, wanted {', '.join(EVERYTHING)}")
    after = request.query.get("after")
    return Query(
        follow=requests.is_set(request, "follow"),
        tail=_number(request, "tail", MOST_LINES),
        since_ns=_number(request, "since_ns", LATEST_NS),
        streams=chosen or EVERYTHING,
        run=request.query.get("run"),
        after=Position() if after is None else Position.parse(after),
        unfinished=requests.is_set(request, "unfinished"),
    )


def _number(request: web.Request, field: str, highest: int) -> int | None:
    if field not in request.query:
        return None
    return requests.whole_number(request, field, default=0, lowest=0, highest=highest)
