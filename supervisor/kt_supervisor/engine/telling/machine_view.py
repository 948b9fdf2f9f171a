"""What `list` and `show` tell of an agent as a program on this machine: what it uses, and what it may use."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kt_ledger.layout import StateLayout
from kt_ledger.records import LIVE_STATES
from kt_supervisor.engine.run import limits, run_records
from kt_supervisor.engine.telling.resources import Roots, Sampler
from kt_supervisor.engine.telling.views import Known


class MachineView:
    """Adds to documents that `views` made; remembers nothing but the sampler's last look."""

    def __init__(self, files: StateLayout) -> None:
        self._files = files
        self._sampler = Sampler()

    async def add_to_all(self, document: dict[str, Any], everyone: Sequence[Known]) -> dict[str, Any]:
        """Add `resources` to every agent that runs, in the document of `list`."""
        entries = dict(zip((known.row.id for known in everyone), document["instances"], strict=True))
        live = [known for known in everyone if _is_live(known)]
        roots = [_roots(known) for known in live]
        used = await asyncio.to_thread(self._sampler.sample, roots)
        self._sampler.forget_all_but({root.run_id for root in roots})
        for known, root in zip(live, roots, strict=True):
            entries[known.row.id]["resources"] = asdict(used[root.run_id])
        return document

    async def add_to_one(self, document: dict[str, Any], known: Known) -> dict[str, Any]:
        """Add `resources` where it runs, `limits` and `memory_backing` where there are any, for `show`."""
        entry = document["instance"]
        if _is_live(known):
            root = _roots(known)
            used = await asyncio.to_thread(self._sampler.sample, [root], with_pss=True)
            entry["resources"] = asdict(used[root.run_id])
        if shown := await asyncio.to_thread(self._limits, known):
            entry["limits"] = shown
        if known.row.memory is not None:
            entry["memory_backing"] = known.row.memory
        return document

    def _limits(self, known: Known) -> dict[str, Any]:
        record = (
            run_records.read_json(self._files.run(known.run.id).record)
            if known.run and _is_live(known)
            else None
        )
        return limits.shown(known.settings, record)


def _is_live(known: Known) -> bool:
    return known.row.state in LIVE_STATES and known.run is not None and known.run.agent_pid is not None


def _roots(known: Known) -> Roots:
    run = known.run
    assert run is not None
    return Roots(
        run_id=run.id,
        boot_id=run.boot_id,
        keeper=(run.keeper_pid, run.keeper_start_ticks),
        agent=(run.agent_pid, run.agent_start_ticks),
    )
