"""What of its environment a caller shall send, and what follows from a changed secret. No value is answered."""

import asyncio
from typing import Any

from aiohttp import web

from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.instance import wanted_variables
from kt_supervisor.engine.instance.current_settings import Question
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.parts import Parts

START, RESTART, RUN = "start", "restart", "run"
"""What a caller's variables are wanted for: a fresh start, one with the last one's overrides, or the Run as it is."""


class SecretRoutes:
    """`/v1/agents/NAME/environment` and `/v1/config/environment`, `/v1/secrets`."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        return [
            web.get("/v1/agents/{name}/environment", self._environment),
            web.get("/v1/config/environment", self._environment_of_all),
            web.post("/v1/secrets/changed", self._changed),
        ]

    async def _environment(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        await self._host.ready()
        row = await self._fleet.instance(requests.name(request)).row()
        given = _texts(body, "settings")
        entries = await asyncio.to_thread(self._settings_for(request.query.get("for", START)), row)
        return requests.answer(wanted_variables.describe(row, entries, given=given))

    def _settings_for(self, purpose: str) -> Question:
        settings = self._parts.settings
        known: dict[str, Question] = {
            START: settings.for_a_fresh_start,
            RESTART: settings.for_a_restart,
            RUN: settings.of_the_run,
        }
        if purpose not in known:
            raise requests.unusable(f"got for={purpose[:20]!r}, wanted one of {', '.join(known)}")
        return known[purpose]

    async def _environment_of_all(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        await self._host.ready()
        entries = self._parts.settings.of_fleet().entries
        return requests.answer(wanted_variables.describe_fleet(entries, given=_texts(body, "settings")))

    async def _changed(self, request: web.Request) -> web.Response:
        body = await requests.body(request)
        await self._host.ready()
        names = body.get("names")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise requests.unusable("got 'names' that are no list of texts, wanted one")
        return requests.answer(await self._fleet.secrets_changed(frozenset(names)))


def _texts(body: dict[str, Any], field: str) -> dict[str, str]:
    given = body.get(field) or {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise requests.unusable(f"got {field!r} that is no object of texts, wanted one")
    return given
