"""`/v1/events`: what happened, as NDJSON or as server-sent events."""

from aiohttp import web

from kt_supervisor.engine.control import requests, streams
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.telling import events
from kt_supervisor.engine.telling.events import Wanted

LATEST = 100
MOST = 1_000_000
MOST_LATEST = 1000
HIGHEST_NUMBER = 2**63 - 1


class EventRoutes:
    """Reading only; `Last-Event-ID` says the same as `after`, and a browser sends it by itself."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        return [web.get("/v1/events", self._events)]

    async def _events(self, request: web.Request) -> web.StreamResponse:
        wanted = await self._wanted(request)
        writer = self._parts.writer
        if streams.EVENT_STREAM in request.headers.get("accept", ""):
            told = events.batches(writer, wanted, encode=events.as_server_sent, alive=b":\n\n")
            return await streams.stream(request, told, content_type=streams.EVENT_STREAM)
        told = events.batches(writer, wanted, encode=events.as_line, alive=b"\n")
        return await streams.stream(request, told, content_type=streams.NDJSON)

    async def _wanted(self, request: web.Request) -> Wanted:
        after = self._after(request)
        most = MOST_LATEST if after is None else MOST
        default = LATEST if after is None else MOST
        limit = requests.whole_number(request, "limit", default=default, lowest=0, highest=most)
        follow = requests.is_set(request, "follow")
        await self._host.ready()
        await events.check(self._parts.writer, after)
        instance_id = None
        if name := request.query.get("instance"):
            instance_id = await self._fleet.id_of(name)
        return Wanted(after=after, limit=limit, follow=follow, instance_id=instance_id)

    @staticmethod
    def _after(request: web.Request) -> int | None:
        seen = request.headers.get("last-event-id")
        if seen is not None:
            if not (seen.isascii() and seen.isdecimal()) or int(seen) > HIGHEST_NUMBER:
                raise requests.unusable(f"got Last-Event-ID {seen[:40]!r}, wanted the id of an event")
            return int(seen)
        if "after" not in request.query:
            return None
        return requests.whole_number(request, "after", default=0, lowest=0, highest=HIGHEST_NUMBER)
