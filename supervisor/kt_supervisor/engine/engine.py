"""The engine as a process: composed here and nowhere else.

Order of life: lock, control socket, `engine.json`, ledger, keepers and gateway. Order of death: socket, what is under
way, ledger, lock. Agents, keepers and gateway outlive it.
"""

import asyncio
import contextlib
import logging
import os
import random
import signal
from collections.abc import Callable
from typing import Any

from kt_ledger import process_identity, unix_socket
from kt_ledger.clock import SystemClock
from kt_ledger.event_documents import ENGINE, GATEWAY, moment
from kt_ledger.layout import StateLayout
from kt_ledger.messages import Status
from kt_ledger.records import LIVE_STATES
from kt_ledger.store import StoreUnavailable
from kt_ledger.version import VERSION
from kt_supervisor.engine import environment, state_dir
from kt_supervisor.engine.control.agent_routes import AgentRoutes
from kt_supervisor.engine.control.configuration_routes import ConfigurationRoutes
from kt_supervisor.engine.control.engine_routes import EngineRoutes
from kt_supervisor.engine.control.event_routes import EventRoutes
from kt_supervisor.engine.control.fleet_routes import FleetRoutes
from kt_supervisor.engine.control.gate import Gate
from kt_supervisor.engine.control.interaction_routes import InteractionRoutes
from kt_supervisor.engine.control.log_routes import LogRoutes
from kt_supervisor.engine.control.machine_routes import MachineRoutes
from kt_supervisor.engine.control.memory_routes import MemoryRoutes
from kt_supervisor.engine.control.render_routes import RenderRoutes
from kt_supervisor.engine.control.server import Control, Group
from kt_supervisor.engine.gateway.journals import Journals
from kt_supervisor.engine.gateway.link import GatewayLink
from kt_supervisor.engine.gateway.listeners import Listeners
from kt_supervisor.engine.instance.fleet import Fleet
from kt_supervisor.engine.instance.restarting import Guard, Restarting
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import WRONG_STATE, Refused
from kt_supervisor.engine.spawn import Spawner
from kt_supervisor.engine.tasks import Tasks
from kt_supervisor.engine.telling.hooks import Hooks
from kt_supervisor.engine.writer import Writer
from kt_supervisor.keeper import proctree

logger = logging.getLogger(__name__)

OPEN_AGAIN_S = 1.0
SWEEP_EVERY_S = 2.0
DRAIN_TIMEOUT_S = 5.0
HOOKS_MAY_FINISH_S = 3.0
LAST_CALLS_S = 5.0


class Engine:
    """Everything that this process holds."""

    def __init__(self, files: StateLayout, *, lock: int) -> None:
        """Compose; `lock` is the descriptor of the engine's lock, which stays the caller's."""
        self._lock = lock
        clock = SystemClock()
        tasks = Tasks()
        writer = Writer(files.database, clock=clock)
        spawner = Spawner(files)
        journals = Journals(files.gateway, writer=writer, clock=clock, tasks=tasks)
        listeners = Listeners(files, writer=writer, tasks=tasks)
        self._gateway = GatewayLink(
            files.gateway,
            spawner=spawner,
            journals=journals,
            tasks=tasks,
            on_connected=listeners.restore,
            on_lost=self._tell_of_gateway,
            may_follow=listeners.may_be_restored,
        )
        listeners.link = self._gateway
        self._files = files
        self._parts = Parts(
            files=files,
            clock=clock,
            writer=writer,
            tasks=tasks,
            spawner=spawner,
            listeners=listeners,
            journals=journals,
            restarting=Restarting(clock=clock, tasks=tasks, chance=random.Random(), guard=Guard()),
        )
        self._fleet = Fleet(self._parts)
        self._hooks = Hooks(self._parts)
        gate = Gate(files, self._fleet, self._parts)
        self._control = Control(self._groups(), uid=os.geteuid(), judge=gate)
        self._handing_over = False
        self._started_at_ns = clock.wall_ns()
        self._tried = asyncio.Event()
        self._adopted = False
        self._came = ""
        self._ended = asyncio.Event()

    async def run(self, *, serving: Callable[[], None]) -> None:
        """Serve until told to stop; call it under the lock. `serving` is called once the socket answers."""
        tasks = self._parts.tasks
        self._came = self._how_we_came()
        self._files.engine_stopped.unlink(missing_ok=True)
        await self._control.start(unix_socket.bind(self._files.engine_socket))
        state_dir.write_record(self._files, self._record())
        serving()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_end)
        loop.add_signal_handler(signal.SIGCHLD, self._parts.spawner.reap)
        tasks.start("opening the ledger", self._open())
        await self._ended.wait()
        if not self._handing_over:
            self._files.engine_socket.unlink(missing_ok=True)
        await self._control.stop()
        await self._hooks.end(HOOKS_MAY_FINISH_S)
        await tasks.end()
        await self._parts.writer.close()

    # -- what the control API asks -----------------------------------------------------------------------------
    async def ready(self) -> None:
        """Return once the first attempt at the ledger is over. Raises StoreUnavailable where it failed."""
        await self._tried.wait()
        if self._parts.writer.trouble is not None:
            raise type(self._parts.writer.trouble)(str(self._parts.writer.trouble))

    async def describe(self) -> dict[str, Any]:
        """Return the document of `GET /v1/engine`."""
        await self._tried.wait()
        trouble = self._parts.writer.trouble
        rows = []
        with contextlib.suppress(StoreUnavailable):
            rows = await self._parts.writer.do(lambda store: store.instances())
        running = sum(row.state in LIVE_STATES for row in rows)
        return {
            "schema_version": 1,
            "running": True,
            "pid": os.getpid(),
            "version": VERSION,
            "state_dir": str(self._files.root),
            "service": environment.service(),
            "started_at": moment(self._started_at_ns),
            "store": "ok" if trouble is None else str(trouble),
            "gateway": await self._describe_gateway(),
            "agents": {"running": running, "total": len(rows)},
        }

    async def end_everything(self) -> list[str]:
        """Stop all agents and the gateway; return what could not be stopped."""
        await self._tried.wait()
        troubles = await self._fleet.stop_all()
        await self._gateway.drain(DRAIN_TIMEOUT_S)
        with contextlib.suppress(StoreUnavailable):
            await self._parts.journals.fold()
        return troubles

    def mark_stopped(self) -> None:
        """Leave the marker that keeps keepers quiet."""
        try:
            state_dir.mark_stopped(self._files)
        except OSError as error:
            # A full disk must not keep the engine from ending; its keepers will then bring it back, as they must.
            logger.error("cannot leave %s: %s", self._files.engine_stopped, error)

    async def hand_over(self, *, within_s: float) -> bool:
        """Finish the orders under way, be found by nobody any more, finish the rest; False where that takes too long.

        Agents, keepers and gateway stay as they are, and no marker is left: were nobody to follow, the keepers would
        bring an engine back. Raises Refused where it is under way already.
        """
        if self._handing_over:
            raise Refused(
                "got a second hand-over while one is under way, wanted one; wait for it",
                code="handing_over",
                exit_code=WRONG_STATE,
            )
        self._handing_over = True
        ordered = await self._control.finish_orders(within_s=within_s, leaving=1)
        self._files.engine_socket.unlink(missing_ok=True)
        # Within what a command waits for an engine that it believes to be starting.
        return await self._control.finish(within_s=LAST_CALLS_S, leaving=1) and ordered

    def end(self) -> None:
        """Have the engine end."""
        self._ended.set()

    # -- inside ------------------------------------------------------------------------------------------------
    def _groups(self) -> tuple[Group, ...]:
        fleet, parts = self._fleet, self._parts
        return (
            EngineRoutes(self),
            FleetRoutes(self, fleet, parts),
            AgentRoutes(self, fleet),
            LogRoutes(self, fleet, parts),
            EventRoutes(self, fleet, parts),
            InteractionRoutes(self, fleet, parts),
            ConfigurationRoutes(self, fleet, parts),
            MemoryRoutes(self, fleet, parts),
            RenderRoutes(self, fleet, parts),
            MachineRoutes(self, fleet, parts),
        )

    def _how_we_came(self) -> str:
        """Return what became of the engine before this one: none, stopped or handed over, or gone without a word."""
        if not self._files.engine_record.exists():
            return "started"
        return "started" if self._files.engine_stopped.exists() else "came back"

    async def _tell_of_ourselves(self, what: str) -> None:
        facts = {"what": what, "pid": os.getpid(), "version": VERSION}
        at_ns = self._parts.clock.wall_ns()
        await self._parts.writer.do(lambda store: store.add_event(ENGINE, None, facts, at_ns))

    async def _open(self) -> None:
        """Open the ledger and take over what it knows; again and again while it cannot be opened."""
        while not self._adopted:
            if await self._parts.writer.open():
                try:
                    await self._fleet.adopt()
                    self._adopted = True
                    await self._tell_of_ourselves(self._came)
                except StoreUnavailable as error:
                    logger.error("%s", error)
            self._tried.set()
            if not self._adopted:
                await asyncio.sleep(OPEN_AGAIN_S)
        self._parts.tasks.start("the gateway", self._gateway.run())
        self._parts.tasks.start("the hooks", self._hooks.run())
        while state_dir.is_ours(self._files, self._lock):
            # What nobody pokes for: journals of gateways that are dead, or that drain.
            try:
                await self._parts.writer.look()
                await self._parts.journals.fold()
            except (StoreUnavailable, OSError) as error:
                logger.warning("journals wait: %s", error)
            await self._keep_the_socket()
            await asyncio.sleep(SWEEP_EVERY_S)
        logger.error("the state directory %s was removed or replaced: this engine ends", self._files.root)
        self.end()

    def _tell_of_gateway(self, what: str, status: Status | None) -> None:
        facts: dict[str, Any] = {"what": what}
        if status is not None:
            facts |= {"pid": status.pid, "incarnation": status.incarnation}
        at_ns = self._parts.clock.wall_ns()
        telling = self._parts.writer.do(lambda store: store.add_event(GATEWAY, None, facts, at_ns))
        self._parts.tasks.start("the event of a gateway", telling)

    async def _keep_the_socket(self) -> None:
        """Have the control socket where it is looked for: whoever tidies folders may have removed it."""
        if self._handing_over or self._ended.is_set() or self._files.engine_socket.is_socket():
            return
        logger.warning("%s was removed: making it again", self._files.engine_socket)
        try:
            await self._control.listen(unix_socket.bind(self._files.engine_socket))
        except OSError as error:
            logger.error("cannot make %s: %s", self._files.engine_socket, error)

    async def _describe_gateway(self) -> dict[str, Any] | None:
        status = await self._gateway.status()
        if status is None:
            return None
        facts = {
            "running": True,
            "pid": status.pid,
            "incarnation": status.incarnation,
            "version": status.version,
        }
        return facts | {"listeners": len(status.listeners), "journal_healthy": status.journal_healthy}

    def _asked_to_end(self) -> None:
        self.mark_stopped()
        self.end()

    def _record(self) -> dict[str, Any]:
        who = {
            "pid": os.getpid(),
            "start_ticks": proctree.start_ticks(os.getpid()),
            "boot_id": process_identity.boot_id(),
        }
        return who | {"version": VERSION, "started_at_ns": self._started_at_ns}
