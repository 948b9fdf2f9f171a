"""The Run that an instance has at this moment: its keeper, its output, and the row that it will leave."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from kt_ledger import fold_run
from kt_ledger.fold_run import RunReader
from kt_ledger.records import InstanceRow, RunRow
from kt_ledger.store import Store
from kt_manifest.launch.operation import Command
from kt_supervisor.engine import environment, state_dir
from kt_supervisor.engine.gateway.client import GatewayAway, GatewayClient
from kt_supervisor.engine.output import log_retention
from kt_supervisor.engine.output.agent_input import AgentInput
from kt_supervisor.engine.output.scrubbing import RunScrubbing
from kt_supervisor.engine.output.tails import Tail
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import STILL_WAITS, StopUnconfirmed
from kt_supervisor.engine.run import adoption, kernel_view, recalling, run_records, spares
from kt_supervisor.engine.run.adoption import Evidence, Verdict
from kt_supervisor.engine.run.beside import Ran
from kt_supervisor.engine.run.ending import Exit
from kt_supervisor.engine.run.keeper_link import KeeperGone, KeeperLink
from kt_supervisor.engine.run.launching import Program
from kt_supervisor.engine.run.spares import Spares
from kt_supervisor.keeper import specification

logger = logging.getLogger(__name__)

FIRST_SEGMENTS = 2
"""How many segments of each stream a Run may fill before its disk cap is looked at: half of the cap at most."""

SPAWN_TIMEOUT_S = 20.0
MEET_TIMEOUT_S = 5.0
CONFIRM_S = 15.0
LOOK_S = 0.02
KEY_AGAIN_S = 1.0
KEY_TRIES = 60


class CurrentRun:
    """One Run under way. `link` is None until its keeper was met.

    `known` are the secrets that nothing it prints may show; `recalled` whether they were looked for, by whoever did not
    begin it.
    """

    def __init__(self, parts: Parts, instance: InstanceRow, run: RunRow) -> None:
        self.run = run
        self.files = parts.files.run(run.id)
        self.link: KeeperLink | None = None
        self.spares = Spares()
        self.followed: KeeperLink | None = None
        self.input = AgentInput(self.files.stdin)
        self._parts = parts
        self._instance = instance
        self._keeper: Any = None
        self.known = parts.known.of_run(run.token)
        self.recalled = False
        self.scrubbing = RunScrubbing(instance.name, self.files, self.known, parts.tasks)

        def make_reader(store: Store) -> RunReader:
            return RunReader(instance.id, run.id, position=store.position(fold_run.log_name(run.id)))

        self.tail = Tail(
            f"output of {instance.name}",
            path_of=lambda number: self.files.segment("out", number),
            make_reader=make_reader,
            writer=parts.writer,
            clock=parts.clock,
            tasks=parts.tasks,
            bound=self.scrubbing.bound("out"),
        )

    # -- beginning ---------------------------------------------------------------------------------------------
    async def spawn(self, program: Program, *, cwd: Path, interactive: bool, metered: bool) -> None:
        """Start the keeper and meet it; adopting a new Run is the same as adopting an old one."""
        told = self._told(
            argv=list(program.argv),
            env=program.env,
            cwd=str(cwd),
            interactive=interactive,
            metered=metered,
            **program.confinement,
        )
        spawn = self._parts.spawner.keeper
        self._keeper = await asyncio.to_thread(spawn, told, log=self.files.keeper_log)
        await self.meet_keeper(within_s=SPAWN_TIMEOUT_S)

    def _told(self, *, metered: bool, **facts: Any) -> bytes:
        parts = self._parts
        return specification.build(
            run_id=self.run.id,
            instance_id=self.run.instance_id,
            name=self._instance.name,
            state_dir=str(parts.files.root),
            engine_command=list(parts.spawner.engine_command()),
            engine_env=environment.for_our_processes(),
            lend_from=str(parts.files.gateway.lend) if metered else None,
            room=FIRST_SEGMENTS,
            segment_limit_bytes=log_retention.segment_limit_bytes(
                log_retention.cap_bytes(parts, self._instance.name)
            ),
            **facts,
        )

    async def meet_keeper(self, *, within_s: float = MEET_TIMEOUT_S) -> None:
        """Say hello to the keeper, whoever started it. Raises KeeperGone."""
        self.link = await KeeperLink.connect(
            self.files.socket, within_s=within_s, gives_up=self._keeper_ended
        )
        self._parts.tasks.start(f"keeper of {self.run.id}", self.link.follow())
        try:
            await self.link.hello()
        except KeeperGone:
            self.link.close()
            self.link = None
            raise

    async def hold_spares(self) -> None:
        """Hold what another keeper will need if this one dies."""
        record = run_records.read_json(self.files.record)
        if record is not None:
            before, self.spares = (
                self.spares,
                await asyncio.to_thread(spares.fetch, self.files.socket, record),
            )
            before.close()

    async def meet_keeper_to_release(self) -> None:
        """Meet a keeper whose agent has ended, where it is still there, so that it can be let go."""
        if self.link is None and state_dir.is_held(self.files.lock):
            try:
                await self.meet_keeper(within_s=1.0)
            except KeeperGone:
                return

    async def started(self) -> None:
        """Return once the keeper has tried to start the agent. Raises KeeperGone where it takes too long."""
        assert self.link is not None
        try:
            await asyncio.wait_for(asyncio.shield(self.link.started), SPAWN_TIMEOUT_S)
        except TimeoutError:
            raise KeeperGone(f"its keeper has not started it within {SPAWN_TIMEOUT_S:g} s") from None

    def live_row(self) -> RunRow:
        """Return the Run's row, with what its keeper recorded."""
        record = run_records.read_json(self.files.record) or {}
        return replace(
            self.run,
            state="live",
            keeper_pid=record.get("keeper_pid"),
            keeper_start_ticks=record.get("keeper_start_ticks"),
            agent_pid=record.get("agent_pid"),
            agent_start_ticks=record.get("agent_start_ticks"),
            boot_id=record.get("boot_id"),
            started_at_ns=record.get("started_at_ns") or self.run.started_at_ns,
        )

    async def replace_keeper(self) -> bool:
        """Give an agent whose keeper died another one; False where that cannot be."""
        record = run_records.read_json(self.files.record) or {}
        agent = await asyncio.to_thread(kernel_view.look, record.get("agent_pid"))
        if agent is None:
            return False
        if self.link is not None:
            self.link.close()
            self.link = None
        held = self.spares.held()
        taken = {name: held.get(name) for name in ("out", "err", "pidfd")}
        identity = {name: record.get(name) for name in ("agent_pid", "agent_start_ticks")}
        told = self._told(
            argv=list(agent.argv),
            env=agent.env,
            cwd=agent.cwd,
            interactive=self.files.stdin.exists(),
            metered=self._parts.listeners.port(self.run.instance_id) is not None,
            takeover={**identity, **taken},
        )
        spawn = self._parts.spawner.keeper
        self._keeper = await asyncio.to_thread(
            spawn, told, log=self.files.keeper_log, handed=tuple(held.values())
        )
        try:
            await self.meet_keeper(within_s=SPAWN_TIMEOUT_S)
        except KeeperGone as error:
            logger.error("no keeper takes over run %s: %s", self.run.id, error)
            return False
        await self.hold_spares()
        return True

    # -- ending ------------------------------------------------------------------------------------------------
    async def stop(self, *, timeout_s: float, command: Command | None = None) -> Exit | None:
        """Have the keeper end the agent's tree; return the exit record, None where the keeper is gone.

        Args:
            timeout_s: the window, after which what is left is killed.
            command: the adapter's own way to stop, which is tried first, inside of the same window.

        Raises:
            StopUnconfirmed: no exit record within the time and fifteen seconds more.
        """
        if self.link is None:
            return None
        try:
            asked = {} if command is None else {"command": command.to_json()}
            await self.link.ask("stop", timeout_s=timeout_s, **asked)
            ended = await asyncio.wait_for(asyncio.shield(self.link.exited), timeout_s + CONFIRM_S)
            return Exit.from_json(ended)
        except KeeperGone:
            return None
        except TimeoutError:
            raise StopUnconfirmed(self._instance.name, STILL_WAITS) from None

    async def run_command(self, command: Command, *, timeout_s: float) -> Ran:
        """Run a command of the adapter beside the agent; return how it ended. Raises KeeperGone."""
        if self.link is None:
            raise KeeperGone("its keeper is not there")
        return Ran.from_json(await self.link.run(command.to_json(), timeout_s=timeout_s))

    async def end_failed_start(self) -> Exit:
        """Have nothing of a failed start left; return its exit record, an empty one where no agent was ever there."""
        if self.link is not None:
            try:
                return await self.stop(timeout_s=0.0) or Exit()
            except StopUnconfirmed:
                return Exit()
        if self._keeper is not None and self._keeper.poll() is None:
            self._keeper.terminate()
        return Exit.from_json(run_records.read_json(self.files.exit) or {})

    async def let_go(self) -> None:
        """Tell the keeper that everything is kept."""
        self.spares.close()
        if self.link is not None:
            await self.link.release()
            self.link.close()

    # -- adoption ----------------------------------------------------------------------------------------------
    async def recall_secrets(self) -> None:
        """Know the secrets of a Run that an earlier engine began, before anybody reads what it printed."""
        if not self.recalled:
            self.recalled = True
            row = self._instance
            found = await asyncio.to_thread(
                recalling.recall,
                self._parts.files,
                row,
                self.files,
                lambda: self._parts.settings.of_the_run(row),
            )
            self.known.add(found)
            if not await self._ask_key():
                self._parts.tasks.start(f"the key of {self._instance.name}", self._ask_key_later())

    async def _ask_key(self) -> bool:
        """Know the provider's key that the gateway uses, which may be in no place that is read here; False: not yet."""
        files = self._parts.files.gateway
        try:
            async with GatewayClient(files.admin) as gateway:
                key = await gateway.key(self._instance.id)
        except GatewayAway:
            return not state_dir.is_held(files.lock)  # a key that nobody holds is in use by nobody
        self.known.add([] if key is None else [key])
        return True

    async def _ask_key_later(self) -> None:
        """Ask a gateway that is there and silent until it answers."""
        for _ in range(KEY_TRIES):
            await asyncio.sleep(KEY_AGAIN_S)
            if await self._ask_key():
                return
        logger.warning("the gateway does not tell which key %s uses", self._instance.name)

    def is_old(self, age_s: float) -> bool:
        """Whether the Run was intended longer ago than `age_s`, so that no keeper of it can be under way."""
        return abs(self._parts.clock.wall_ns() - self.run.started_at_ns) > age_s * 1e9

    async def wait_for_keeper(self, within_s: float) -> tuple[Verdict, Evidence]:
        """Look again until a keeper is there or the time is up."""
        deadline_s = asyncio.get_running_loop().time() + within_s
        while True:
            evidence = await asyncio.to_thread(adoption.gather, self.files, self.run)
            verdict = adoption.judge(evidence)
            if verdict is not Verdict.LOST or asyncio.get_running_loop().time() > deadline_s:
                return verdict, evidence
            await asyncio.sleep(LOOK_S)

    def _keeper_ended(self) -> bool:
        if self._keeper is not None:
            return self._keeper.poll() is not None
        return state_dir.is_held(self.files.lock) is not True
