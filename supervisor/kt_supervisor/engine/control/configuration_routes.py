"""`/v1/agents/NAME/config`: what is set, and setting it."""

import asyncio
from typing import Any

from aiohttp import web

from kt_ledger.event_documents import CONFIGURATION
from kt_manifest.configuration import options, secrets
from kt_manifest.launch import inheritance
from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance import configuration
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.parts import Parts


class ConfigurationRoutes:
    """`get`, `set`, `unset`."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        path = "/v1/agents/{name}/config"
        return [web.get(path, self._get), web.put(path, self._set), web.delete(path, self._unset)]

    async def _get(self, request: web.Request) -> web.Response:
        await self._host.ready()
        name, key = self._fleet.instance(requests.name(request)).name, request.query.get("key")
        reveal = requests.is_set(request, "reveal")
        environment = requests.environment(await requests.body(request)) if reveal else None
        document = await asyncio.to_thread(
            configuration.get, self._parts.files, name, key=key, reveal_with=environment
        )
        return requests.answer(document)

    async def _set(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        await self._host.ready()
        document = await configuration.set_value(
            self._parts.files,
            self._fleet.instance(requests.name(request)),
            key=requests.text(body, "key"),
            value=requests.text(body, "value"),
            environment=requests.environment(body),
        )
        await self._tell(request, "set", document)
        return requests.answer(document)

    async def _unset(self, request: web.Request) -> web.Response:
        await self._host.ready()
        instance = self._fleet.instance(requests.name(request))
        document = await configuration.unset(self._parts.files, instance, key=request.query.get("key", ""))
        await self._tell(request, "unset", document)
        return requests.answer(document)

    async def _tell(self, request: web.Request, change: str, document: dict[str, Any]) -> None:
        """Keep an event of a change: its value as `config get` shows it, where a secret is masked."""
        instance_id, at_ns = self._fleet.instance(requests.name(request)).id, self._parts.clock.wall_ns()
        facts = {"change": change, "key": document["key"]}
        variable = document["key"].removeprefix(options.PASS_THROUGH)
        if variable != document["key"] and inheritance.is_provider_key(variable):
            document = document | {"value": secrets.MASK}  # an event is kept for long
        facts |= {"value": document["value"]} if "value" in document else {}
        await self._parts.writer.do(lambda store: store.add_event(CONFIGURATION, instance_id, facts, at_ns))
