"""What the engine holds of a Run for the day that its keeper dies: the pipes' read ends, and the agent's pidfd.

While they are held, an agent whose keeper was killed writes into its pipes as before, and the keeper that takes over
reads on; with the pidfd the kernel tells how the agent ended even though it is nobody's child any more.
"""

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_ledger import unix_socket
from kt_supervisor.keeper import proctree

TIMEOUT_S = 5.0
STREAMS = ("out", "err")
ANSWER_BYTES = 65536


@dataclass(slots=True)
class Spares:
    """Descriptors, None where there is none to hold."""

    out: int | None = None
    err: int | None = None
    pidfd: int | None = None

    def held(self) -> dict[str, int]:
        """Return those that are open, by name."""
        named = (("out", self.out), ("err", self.err), ("pidfd", self.pidfd))
        return {name: number for name, number in named if number is not None}

    def close(self) -> None:
        """Let go of all of them."""
        for number in self.held().values():
            os.close(number)
        self.out = self.err = self.pidfd = None


def fetch(keeper: Path, record: dict[str, Any]) -> Spares:
    """Return what there is to hold of a Run; blocks for `TIMEOUT_S` at most. What cannot be had is None.

    Args:
        keeper: the keeper's socket.
        record: its `run.json`.
    """
    found = Spares(pidfd=_pidfd(record.get("agent_pid"), record.get("agent_start_ticks")))
    try:
        found.out, found.err = _pipes(keeper)
    except (OSError, ValueError, AttributeError):
        pass  # a keeper that has just ended, or one of another version
    return found


def _pipes(keeper: Path) -> tuple[int | None, int | None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        unix_socket.connect(connection, keeper)
        connection.sendall(b'{"op": "spares"}\n')
        data, descriptors, _, _ = socket.recv_fds(connection, ANSWER_BYTES, len(STREAMS))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    named: dict[str, int] = {}
    try:
        named = dict(zip(json.loads(data).get("streams", ()), descriptors, strict=True))
        return named.get("out"), named.get("err")
    finally:
        for descriptor in descriptors:
            if descriptor not in (named.get("out"), named.get("err")):
                os.close(descriptor)


def _pidfd(pid: object, ticks: object) -> int | None:
    """Return a descriptor of exactly this process (pidfd_open(2), Linux 5.3)."""
    if not isinstance(pid, int) or not hasattr(os, "pidfd_open"):
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    # Opened first, verified then: a number that was given anew in between is somebody else's.
    process = proctree.read(pid)
    if process is None or process.start_ticks != ticks:
        os.close(descriptor)
        return None
    return descriptor
