"""`/v1/agents/NAME/config` and, for all agents, `/v1/config`: what is set, and setting it."""

import asyncio
from typing import Any

from aiohttp import web

from kt_ledger.event_documents import CONFIGURATION
from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance import configuration, configuring
from kt_supervisor.engine.instance.configuring import Place
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.parts import Parts


class ConfigurationRoutes:
    """`get`, `set`, `unset`, `edit` (the file's text, and its replacement), `diff`."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        served = [web.get("/v1/agents/{name}/config/diff", self._diff)]
        for path in ("/v1/agents/{name}/config", "/v1/config"):
            served += [
                web.get(path, self._get),
                web.put(path, self._set),
                web.delete(path, self._unset),
                web.get(f"{path}/file", self._text),
                web.put(f"{path}/file", self._replace),
            ]
        return served

    async def _get(self, request: web.Request) -> web.Response:
        instance, key = await self._whose(request), request.query.get("key")
        reveal = requests.is_set(request, "reveal")
        environment = requests.environment(await requests.body(request)) if reveal else None
        document = await asyncio.to_thread(
            configuration.get, self._parts, instance, key=key, reveal_with=environment
        )
        return requests.answer(document)

    async def _diff(self, request: web.Request) -> web.Response:
        instance = await self._whose(request)
        assert instance is not None
        await instance.row()
        return requests.answer(await asyncio.to_thread(configuration.diff, self._parts, instance))

    async def _set(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        document = await configuring.set_value(
            self._parts,
            await self._place(request),
            key=requests.text(body, "key"),
            value=requests.text(body, "value"),
            environment=requests.environment(body),
        )
        await self._tell(request, "set", document)
        return requests.answer(document)

    async def _unset(self, request: web.Request) -> web.Response:
        document = await configuring.unset(await self._place(request), key=request.query.get("key", ""))
        await self._tell(request, "unset", document)
        return requests.answer(document)

    async def _text(self, request: web.Request) -> web.Response:
        return requests.answer(await configuring.text(await self._place(request)))

    async def _replace(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        document = await configuring.replace(
            self._parts,
            await self._place(request),
            wanted=requests.text(body, "text"),
            was=requests.text(body, "was"),
            environment=requests.environment(body),
        )
        if document["changed"]:
            await self._keep(request, {"change": "edit", "keys": document["changed"]})
        return requests.answer(document)

    async def _whose(self, request: web.Request) -> Instance | None:
        await self._host.ready()
        if "name" not in request.match_info:
            return None
        return self._fleet.instance(requests.name(request))

    async def _place(self, request: web.Request) -> Place:
        return configuring.place(self._parts, await self._whose(request), self._fleet.instances())

    async def _tell(self, request: web.Request, change: str, document: dict[str, Any]) -> None:
        """Keep an event of a change: its value as `config get` shows it, where a secret is masked."""
        facts = {"change": change, "key": document["key"]}
        facts |= {"value": document["value"]} if "value" in document else {}
        await self._keep(request, facts)

    async def _keep(self, request: web.Request, facts: dict[str, Any]) -> None:
        instance = await self._whose(request)
        instance_id, at_ns = None if instance is None else instance.id, self._parts.clock.wall_ns()
        await self._parts.writer.do(lambda store: store.add_event(CONFIGURATION, instance_id, facts, at_ns))
