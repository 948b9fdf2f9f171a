"""Who this process is, in words that survive pid reuse: boot id, pid, kernel start ticks."""

import os
from dataclasses import asdict, dataclass
from typing import Any

from kt_ledger import clock, ids, process_identity


@dataclass(frozen=True, slots=True)
class Identity:
    """One gateway process; `incarnation` names its journal."""

    version: str
    pid: int
    start_ticks: int
    boot_id: str
    incarnation: str
    started_at_ns: int

    def to_json(self) -> dict[str, Any]:
        """Return the fields of `gateway.json`."""
        return asdict(self)


def of_this_process(*, version: str) -> Identity:
    """Return a new identity of this process."""
    now_ns = clock.SystemClock().wall_ns()
    ticks, boot_id = process_identity.start_ticks(), process_identity.boot_id()
    return Identity(version, os.getpid(), ticks, boot_id, ids.new_id(), now_ns)
