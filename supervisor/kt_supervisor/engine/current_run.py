"""The Run that an instance has at this moment: its keeper, its output, and the row that it will leave."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from kt_ledger import fold_run
from kt_ledger.fold_run import RunReader
from kt_ledger.records import InstanceRow, RunRow
from kt_ledger.store import Store
from kt_supervisor.engine import adoption, environment, log_retention, run_logs, state_dir
from kt_supervisor.engine.adoption import Evidence, Verdict
from kt_supervisor.engine.agent_input import AgentInput
from kt_supervisor.engine.keeper_link import KeeperGone, KeeperLink
from kt_supervisor.engine.launching import Program
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import FAILED, WRONG_STATE
from kt_supervisor.engine.tails import Tail
from kt_supervisor.keeper import specification

READINESS_S = 0.3
"""How long an agent must have been alive to count as started: the contract's window."""

SPAWN_TIMEOUT_S = 20.0
MEET_TIMEOUT_S = 5.0
CONFIRM_S = 15.0
LOOK_S = 0.02


class LaunchFailed(Exception):
    """The agent did not start; the message has its exit code and its last lines where it got so far."""

    exit_code = FAILED
    code = "launch_failed"

    def __init__(self, message: str, *, detail: str) -> None:
        self.detail = detail
        super().__init__(message)


class StopUnconfirmed(Exception):
    """Something of the agent could not be ended; asking again looks again."""

    exit_code = WRONG_STATE
    code = "stop_unconfirmed"

    def __init__(self, name: str, which: str) -> None:
        super().__init__(
            f"the stop of {name} is not confirmed: got processes {which} that do not end, wanted none; "
            f"look at them, then `kt agent stop {name}` again"
        )


class CurrentRun:
    """One Run under way. `link` is None until its keeper was met."""

    def __init__(self, parts: Parts, instance: InstanceRow, run: RunRow) -> None:
        self.run = run
        self.files = parts.files.run(run.id)
        self.link: KeeperLink | None = None
        self.input = AgentInput(self.files.stdin)
        self._parts = parts
        self._keeper: Any = None

        def make_reader(store: Store) -> RunReader:
            return RunReader(instance.id, run.id, position=store.position(fold_run.log_name(run.id)))

        self.tail = Tail(
            f"output of {instance.name}",
            path_of=lambda number: self.files.segment("out", number),
            make_reader=make_reader,
            writer=parts.writer,
            clock=parts.clock,
            tasks=parts.tasks,
        )

    # -- beginning ---------------------------------------------------------------------------------------------
    async def spawn(
        self, program: Program, *, name: str, cwd: Path, interactive: bool, metered: bool
    ) -> None:
        """Start the keeper and meet it; adopting a new Run is the same as adopting an old one."""
        parts = self._parts
        told = specification.build(
            run_id=self.run.id,
            instance_id=self.run.instance_id,
            name=name,
            state_dir=str(parts.files.root),
            argv=list(program.argv),
            env=program.env,
            cwd=str(cwd),
            interactive=interactive,
            engine_command=list(parts.spawner.engine_command()),
            engine_env=environment.for_our_processes(),
            lend_from=str(parts.files.gateway.lend) if metered else None,
            segment_limit_bytes=log_retention.segment_limit_bytes(log_retention.cap_bytes(parts, name)),
        )
        self._keeper = await asyncio.to_thread(parts.spawner.keeper, told, log=self.files.keeper_log)
        await self.meet_keeper(within_s=SPAWN_TIMEOUT_S)

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

    async def meet_keeper_to_release(self) -> None:
        """Meet a keeper whose agent has ended, where it is still there, so that it can be let go."""
        if self.link is None and state_dir.is_held(self.files.lock):
            try:
                await self.meet_keeper(within_s=1.0)
            except KeeperGone:
                return

    async def ready(self) -> None:
        """Return once the agent has been alive for the readiness window. Raises LaunchFailed, KeeperGone."""
        assert self.link is not None
        await self.started()
        done, _ = await asyncio.wait([self.link.agent_exited], timeout=READINESS_S)
        if done:
            raise LaunchFailed("it ended at once", detail="it ended at once")

    async def started(self) -> None:
        """Return once the keeper has tried to start the agent. Raises KeeperGone where it takes too long."""
        assert self.link is not None
        try:
            await asyncio.wait_for(asyncio.shield(self.link.started), SPAWN_TIMEOUT_S)
        except TimeoutError:
            raise KeeperGone(f"its keeper has not started it within {SPAWN_TIMEOUT_S:g} s") from None

    def live_row(self) -> RunRow:
        """Return the Run's row, with what its keeper recorded."""
        record = adoption.read_json(self.files.record) or {}
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

    # -- ending ------------------------------------------------------------------------------------------------
    async def stop(self, *, timeout_s: float) -> dict[str, Any] | None:
        """Have the keeper end the agent's tree; return the exit record, None where the keeper is gone.

        Raises:
            StopUnconfirmed: no exit record within the time and fifteen seconds more.
        """
        if self.link is None:
            return None
        try:
            await self.link.ask("stop", timeout_s=timeout_s)
            return await asyncio.wait_for(asyncio.shield(self.link.exited), timeout_s + CONFIRM_S)
        except KeeperGone:
            return None
        except TimeoutError:
            raise StopUnconfirmed(self.files.root.name, "(its keeper still waits)") from None

    async def end_failed_start(self) -> dict[str, Any]:
        """Have nothing of a failed start left; return its exit record, or nothing where no agent was ever there."""
        if self.link is not None:
            try:
                return await self.stop(timeout_s=0.0) or {}
            except StopUnconfirmed:
                return {}
        if self._keeper is not None and self._keeper.poll() is None:
            self._keeper.terminate()
        return adoption.read_json(self.files.exit) or {}

    def explain(self, name: str, error: Exception, ended: dict[str, Any]) -> LaunchFailed:
        """Return a failed start as it is told: why, the exit code, the last lines."""
        if spawn_error := ended.get("spawn_error"):
            detail = str(spawn_error)
        elif isinstance(error, LaunchFailed) and ended:
            how = (
                f"signal {ended['signal']}"
                if ended.get("signal") is not None
                else f"exit code {ended.get('code')}"
            )
            detail = f"it ended at once with {how}"
        else:
            detail = str(error) or type(error).__name__
        said = run_logs.last_lines(self.files)
        shown = "; its last lines:\n  " + "\n  ".join(said) if said else ""
        wanted = f"wanted one that is alive for {READINESS_S:g} s; correct it and start again"
        if isinstance(error, LaunchFailed) and detail.startswith("it "):
            got = f"got one that {detail.removeprefix('it ')}"
            return LaunchFailed(f"{name} did not start: {got}, {wanted}{shown}", detail=detail)
        return LaunchFailed(f"{name} did not start: {detail}{shown}", detail=detail)

    async def let_go(self) -> None:
        """Tell the keeper that everything is kept."""
        if self.link is not None:
            await self.link.release()
            self.link.close()

    # -- adoption ----------------------------------------------------------------------------------------------
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
