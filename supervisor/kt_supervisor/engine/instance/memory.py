"""Memory that is attached to an instance: a record, and for one kind a folder that outlives every Run.

Laws: changed only while nothing of the instance runs; what is in the folder is the agent's, and no verb here reads,
changes or deletes it (`remove --delete` deletes the Agent Home, and it lies in there).
"""

import asyncio
from typing import Any

from kt_ledger.exit_codes import USAGE, WRONG_STATE
from kt_ledger.layout import StateLayout
from kt_ledger.records import LIVE_STATES, InstanceRow
from kt_manifest.configuration import options
from kt_manifest.contract.snapshot import Adapter
from kt_supervisor.engine.instance import memory_folder
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.instance.memory_folder import FILESYSTEM, FOLDER
from kt_supervisor.engine.problems import Refused
from kt_supervisor.engine.writer import Writer

NATIVE = "native"
GUARANTEES = {FILESYSTEM: "managed_dir_byte_durable", NATIVE: "home_persistence_only"}
BOUNDARIES = {
    FILESYSTEM: "kt keeps this folder, byte for byte, from Run to Run and never changes what is in it; "
    "what the agent writes there, and whether it reads it again, is the agent's own.",
    NATIVE: "kt keeps the Agent Home from Run to Run and no more; "
    "how and where the agent remembers is its own, and nothing of it is promised.",
}


class Memories:
    """Attaches, detaches and tells."""

    def __init__(self, files: StateLayout, writer: Writer) -> None:
        self._files = files
        self._writer = writer

    async def attach(self, instance: Instance, kind: str) -> dict[str, Any]:
        """Attach memory; the same kind again changes nothing, but makes a folder that is missing.

        Raises:
            Refused: an unknown kind (2), while it is live or another kind is attached (4), a folder that cannot be (1).
        """
        if kind not in GUARANTEES:
            raise Refused(
                f"unknown kind of memory: got {kind[:40]!r}, wanted {' or '.join(GUARANTEES)}",
                code="memory_kind_unknown",
                exit_code=USAGE,
            )
        async with instance.lock:
            row = await instance.row()
            _refuse_live(row, "attach")
            if row.memory not in (None, kind):
                raise Refused(
                    f"cannot attach {kind} memory to {row.name}: got {row.memory} memory attached, wanted none; "
                    f"kt agent memory detach {row.name} keeps its data and makes room",
                    code="memory_conflict",
                    exit_code=WRONG_STATE,
                )
            if kind == FILESYSTEM:
                await asyncio.to_thread(memory_folder.ensure, self._files.home(row.name))
            if row.memory is None:
                await self._writer.do(lambda store: store.set_memory(row.id, kind))
        return self._document(row, kind)

    async def detach(self, instance: Instance) -> dict[str, Any]:
        """Forget that memory is attached; its data stays. Raises Refused (4) while it is live."""
        async with instance.lock:
            row = await instance.row()
            _refuse_live(row, "detach")
            if row.memory is not None:
                await self._writer.do(lambda store: store.set_memory(row.id, None))
        notices = [] if row.memory else [f"{row.name} had no memory attached"]
        return {"schema_version": 1, "instance": row.name, "notices": notices}

    async def show(self, instance: Instance) -> dict[str, Any]:
        """Return what is attached; `kind` is None where nothing is."""
        row = await instance.row()
        document = await asyncio.to_thread(self._document, row, row.memory)
        folder = self._files.home(row.name) / FOLDER
        return document | {
            "present": row.memory == FILESYSTEM and memory_folder.kind_of(folder) == "a folder"
        }

    def _document(self, row: InstanceRow, kind: str | None) -> dict[str, Any]:
        adapter = Adapter.from_json(row.adapter)
        return {
            "schema_version": 1,
            "instance": row.name,
            "kind": kind,
            "guarantee": GUARANTEES.get(kind or ""),
            "dir": str(self._files.home(row.name) / FOLDER) if kind == FILESYSTEM else None,
            "declared": adapter.maps(options.MEMORY_DIR),
            "boundary": BOUNDARIES.get(kind or ""),
        }


def _refuse_live(row: InstanceRow, verb: str) -> None:
    if row.state in LIVE_STATES:
        raise Refused(
            f"cannot {verb} memory while {row.name} is {row.state}: got a live agent, wanted one that does not run; "
            f"kt agent stop {row.name} first",
            code="memory_while_live",
            exit_code=WRONG_STATE,
        )
