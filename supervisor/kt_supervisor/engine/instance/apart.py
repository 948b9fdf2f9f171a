"""Stopping agents through their keepers alone: while the ledger is away, or does not know them."""

import asyncio
from collections.abc import Container
from typing import Any

from kt_ledger.layout import RunLayout, StateLayout
from kt_ledger.records import State
from kt_manifest.contract import names
from kt_supervisor.engine import state_dir
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import STILL_WAITS, NoSuchAgent, StopUnconfirmed
from kt_supervisor.engine.run import run_records
from kt_supervisor.engine.run.current_run import CONFIRM_S
from kt_supervisor.engine.run.keeper_link import KeeperGone, KeeperLink


async def stop_all(parts: Parts, *, apart_from: Container[str], timeout_s: float) -> list[str]:
    """Stop what runs, but for the Runs named; return what could not be stopped, in words."""
    found = {
        str(name)
        for run in await asyncio.to_thread(live_runs, parts.files)
        if run.root.name not in apart_from
        and state_dir.is_held(run.lock)
        and (name := (run_records.owner(run) or {}).get("name"))
    }
    work = [stop(parts, name, timeout_s=timeout_s) for name in sorted(found)]
    answers = await asyncio.gather(*work, return_exceptions=True)
    return [str(answer) for answer in answers if isinstance(answer, Exception)]


async def stop(parts: Parts, name: str, *, timeout_s: float) -> dict[str, Any]:
    """Stop an agent through its keeper alone, while the ledger is away; it is kept once that is back.

    Raises:
        NoSuchAgent: nothing of that name runs, as far as can be seen without the ledger.
        StopUnconfirmed: it does not end.
    """
    names.check(name)
    clock = asyncio.get_running_loop()
    for run in await asyncio.to_thread(live_runs, parts.files):
        if (run_records.owner(run) or {}).get("name") != name:
            continue
        try:
            link = await KeeperLink.connect(run.socket, within_s=1.0)
        except KeeperGone:
            continue
        parts.tasks.start(f"stop {name}", link.follow())
        ends_s = clock.time() + timeout_s + CONFIRM_S
        try:
            await link.ask("stop", timeout_s=timeout_s)
            while run_records.read_json(run.exit) is None:
                if clock.time() > ends_s:
                    raise StopUnconfirmed(name, STILL_WAITS)
                await asyncio.sleep(0.05)  # its own connection ends with the keeper, not with the agent
        finally:
            link.close()
        forced = bool((run_records.read_json(run.exit) or {}).get("forced"))
        return {"name": name, "state": str(State.STOPPED), "forced": forced}
    raise NoSuchAgent(name)


def live_runs(files: StateLayout) -> list[RunLayout]:
    """Return the Runs of which nobody has recorded an end."""
    folders = files.runs.iterdir() if files.runs.is_dir() else ()
    return [run for folder in folders if not (run := RunLayout(folder)).exit.exists()]
