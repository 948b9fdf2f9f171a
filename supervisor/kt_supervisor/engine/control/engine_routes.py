"""The engine itself: what it is, and its end."""

import asyncio
import os
from typing import Any, Protocol

from aiohttp import web

from kt_ledger.version import VERSION
from kt_supervisor.engine import environment
from kt_supervisor.engine.control import requests

HANDOVER_TIMEOUT_S = 60.0
"""How long what is under way may take before the next engine has to go on with it: more than a start, or most stops."""


class Host(Protocol):
    """What the routes ask of the engine itself."""

    async def describe(self) -> dict[str, Any]:
        """Return the document of `GET /v1/engine`."""
        ...

    async def ready(self) -> None:
        """Return once the first attempt at the ledger is over. Raises StoreUnavailable where it failed."""
        ...

    async def end_everything(self) -> list[str]:
        """Stop all agents and the gateway; return what could not be stopped."""
        ...

    def mark_stopped(self) -> None:
        """Leave the marker that keeps keepers quiet."""
        ...

    def end(self) -> None:
        """Have the engine end, once the answer has left."""
        ...

    async def hand_over(self, *, within_s: float) -> bool:
        """Be found by nobody any more and finish what is under way; False where that takes longer than `within_s`."""
        ...


class EngineRoutes:
    """`/v1/engine`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        return [
            web.get("/v1/engine", self._engine),
            web.post("/v1/engine/stop", self._stop),
            web.post("/v1/engine/handover", self._hand_over),
        ]

    async def _engine(self, _: web.Request) -> web.Response:
        return requests.answer(await self._host.describe())

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        everything = bool((await requests.body(request)).get("all"))
        await asyncio.to_thread(self._host.mark_stopped)
        notices = await self._host.end_everything() if everything else []
        if manager := environment.service():
            notices.append(
                f"{manager} starts it again: it is a service; `kt engine uninstall` takes that away, and its own "
                f"commands stop it for now"
            )
        answer = requests.answer({"stopped": True, "all": everything, "notices": notices})
        await answer.prepare(request)
        await answer.write_eof()
        self._host.end()
        return answer

    async def _hand_over(self, request: web.Request) -> web.StreamResponse:
        within_s = requests.seconds(await requests.body(request), default=HANDOVER_TIMEOUT_S)
        finished = await self._host.hand_over(within_s=within_s)
        notices = (
            []
            if finished
            else [f"not everything was finished within {within_s:g} s: the next engine goes on"]
        )
        facts = {"handed_over": True, "pid": os.getpid(), "version": VERSION, "notices": notices}
        answer = requests.answer(facts)
        await answer.prepare(request)
        await answer.write_eof()
        self._host.end()
        return answer
