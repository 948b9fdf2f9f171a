"""Who this process is, in words that survive pid reuse: boot id, pid, kernel start ticks (design section 3).

On systems without /proc the boot id is empty and the ticks are 0: nobody may signal such a process by them.
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kt_ledger import clock, ids


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
    return Identity(version, os.getpid(), _start_ticks(), _boot_id(), ids.new_id(), now_ns)


def _start_ticks() -> int:
    try:
        # proc_pid_stat(5): the command may hold spaces and parentheses; starttime is field 22.
        return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 0


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
