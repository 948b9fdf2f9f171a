"""`/v1/doctor`: what the engine finds on this machine."""

import asyncio
import getpass

from aiohttp import web

from kt_ledger.layout import StateLayout
from kt_ledger.store import StoreUnavailable
from kt_supervisor.doctor import examination, finding, machine
from kt_supervisor.doctor.examination import Inside
from kt_supervisor.engine.control import requests
from kt_supervisor.engine.control.engine_routes import Host
from kt_supervisor.engine.gateway.client import GatewayAway
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.parts import Parts


class MachineRoutes:
    """Reading only."""

    def __init__(self, host: Host, fleet: Fleet, parts: Parts) -> None:
        self._host = host
        self._fleet = fleet
        self._parts = parts
        self._began = (parts.clock.wall_ns(), machine.uptime_ns())

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        return [web.get("/v1/doctor", self._doctor)]

    async def _doctor(self, _: web.Request) -> web.Response:
        clock, files = self._parts.clock, self._parts.files
        inside = Inside(
            engine=await self._host.describe(),
            runs=[run.root.name for run in self._fleet.runs_under_way()],
            wanted_ports=await self._wanted(),
            served_ports=await self._served(),
            jumped_ns=machine.moved(self._began, (clock.wall_ns(), machine.uptime_ns())),
        )
        findings = await asyncio.to_thread(self._examine, files, inside)
        return requests.answer(finding.document(findings, engine=True))

    def _examine(self, files: StateLayout, inside: Inside) -> list[finding.Finding]:
        return examination.examine(files, clock=self._parts.clock, user=getpass.getuser(), inside=inside)

    async def _wanted(self) -> dict[int, str]:
        try:
            rows = await self._parts.writer.do(lambda store: store.instances())
        except StoreUnavailable:
            return {}
        return {row.port: row.name for row in rows if row.port}

    async def _served(self) -> list[int] | None:
        client = self._parts.listeners.link.here
        if client is None:
            return None
        try:
            return list((await client.status()).listeners.values())
        except GatewayAway:
            return None
