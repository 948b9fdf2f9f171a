"""What a managed agent may ask over the control socket: reads of what concerns itself. Everything else is refused.

A refusal is an event, at most one a minute of each kind and Run: an agent that asks in a loop fills no disk.
"""

import asyncio
import logging
import socket

from aiohttp import web

from kt_ledger import unix_socket
from kt_ledger.exit_codes import FAILED
from kt_ledger.layout import RunLayout, StateLayout
from kt_ledger.store import StoreUnavailable
from kt_supervisor.engine import callers
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import Problem

logger = logging.getLogger(__name__)

EVENT = "refused"
AGAIN_S = 60.0
OWN_READS = frozenset(
    {
        "/v1/agents/{name}",
        "/v1/agents/{name}/usage",
        "/v1/agents/{name}/logs",
        "/v1/agents/{name}/exchanges",
    }
)
"""The reads that an agent has of itself."""


class Gate:
    """Judges each call by the process that made its connection."""

    def __init__(self, files: StateLayout, fleet: Fleet, parts: Parts) -> None:
        self._files = files
        self._fleet = fleet
        self._parts = parts
        self._told_s: dict[tuple[str, str], float] = {}

    async def refusal(self, request: web.Request, endpoint: socket.socket) -> Problem | None:
        """Return why this call is refused; None where it is not."""
        pid = unix_socket.peer_pid(endpoint)
        if pid is None:
            return None  # macOS, or a caller in a PID namespace of its own: a container's isolation is another's work
        run = await asyncio.to_thread(self._run_of, pid)
        if not unix_socket.peer_is_there(endpoint):
            return _gone(pid)
        if run is None:
            return None
        name, _ = callers.owner_of(run)
        if _is_own_read(request, name):
            return None
        await self._tell(run, request, pid)
        return _inside(request, name)

    def _run_of(self, pid: int) -> RunLayout | None:
        return callers.run_of(callers.lineage(pid), self._files, self._fleet.runs_under_way())

    async def _tell(self, run: RunLayout, request: web.Request, pid: int) -> None:
        what = (run.root.name, f"{request.method} {_template(request)}")
        now_s = asyncio.get_running_loop().time()
        if now_s - self._told_s.get(what, -AGAIN_S) < AGAIN_S:
            return
        self._told_s = {key: at for key, at in self._told_s.items() if now_s - at < AGAIN_S} | {what: now_s}
        name, instance_id = callers.owner_of(run)
        # The route and not the path: what an agent wrote enters no event.
        document = {"schema_version": 1, "instance": name, "run_id": what[0], "pid": pid, "asked": what[1]}
        logger.warning("refused %s to process %s inside of agent %s", what[1], pid, name)
        at_ns = self._parts.clock.wall_ns()

        try:
            await self._parts.writer.do(
                lambda store: store.add_event(EVENT, instance_id or None, document, at_ns)
            )
        except StoreUnavailable as error:
            logger.warning("the refusal is kept in this log only: %s", error)


def _is_own_read(request: web.Request, name: str) -> bool:
    own = bool(name) and request.match_info.get("name") == name
    return own and request.method == "GET" and _template(request) in OWN_READS


def _template(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "(unknown)"


def _inside(request: web.Request, name: str) -> Problem:
    whose = f"agent {name}" if name else "a managed agent"
    said = (
        f"refused to a process inside of {whose}: got {request.method} {request.path}, wanted a read of its own usage, "
        "logs, calls or state; ask from a terminal outside of the agent"
    )
    return Problem(403, "inside_an_agent", FAILED, said)


def _gone(pid: int) -> Problem:
    said = f"the process that connected ({pid}) has ended: got nobody to judge, wanted the one who asks; ask again"
    return Problem(403, "caller_gone", FAILED, said)
