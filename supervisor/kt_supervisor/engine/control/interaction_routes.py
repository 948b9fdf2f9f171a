"""Talking to an agent: `send`, `eof`, `attach`."""

from aiohttp import web

from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.output import sending
from kt_supervisor.engine.output.attaching import Attachment, Lines
from kt_supervisor.engine.parts import Parts

PROTOCOL = "kt-attach"

LONGEST_BYTES = 2 << 20
"""The longest message: in JSON it takes up to six times as much, which the body's limit still allows."""


class InteractionRoutes:
    """`/v1/agents/NAME/send|eof|attach`."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        agent = "/v1/agents/{name}"
        return [
            web.post(f"{agent}/send", self._send),
            web.post(f"{agent}/eof", self._eof),
            web.get(f"{agent}/attach", self._attach),
        ]

    async def _send(self, request: web.Request) -> web.Response:
        text = requests.text(await requests.body(request), "text")
        try:
            message = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise requests.unusable(f"got a text that is no Unicode ({error.reason})") from error
        if len(message) > LONGEST_BYTES:
            raise requests.unusable(f"got a message of {len(message)} bytes, wanted at most {LONGEST_BYTES}")
        await self._host.ready()
        return requests.answer(await sending.send(self._fleet.instance(requests.name(request)), message))

    async def _eof(self, request: web.Request) -> web.Response:
        await self._host.ready()
        return requests.answer(await sending.end(self._fleet.instance(requests.name(request))))

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("upgrade") != PROTOCOL:
            raise requests.unusable(f"got no upgrade to {PROTOCOL}, wanted one: attach is a raw stream")
        tail = requests.whole_number(request, "tail", default=10, lowest=0, highest=10_000)
        await self._host.ready()
        attachment = await Attachment.to(self._parts, self._fleet.instance(requests.name(request)), tail=tail)
        answer = web.StreamResponse(
            status=101,
            headers={
                "connection": "upgrade",
                "upgrade": PROTOCOL,
                "kt-input": "yes" if attachment.takes_input else "no",
            },
        )
        await answer.prepare(request)
        lines = Lines()
        request.protocol.set_parser(lines)  # type: ignore[arg-type]  # it calls feed_data and feed_eof
        assert request.transport is not None
        await attachment.run(request.transport, lines)
        request.transport.close()
        return answer
