"""Who listens at the other end of the engine's socket, and whether it can answer at all."""

import socket
import struct
from pathlib import Path

from kt_client.errors import EngineLate

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid (unix(7), SO_PEERCRED)


def refuse_stopped(connection: socket.socket) -> None:
    """Return unless the engine is stopped by a signal: it would take the question and never answer.

    Raises:
        EngineLate: it is; the message names the process and how it goes on.
    """
    pid = _pid(connection)
    if pid and _state(pid) == "T":
        raise EngineLate(
            f"the engine is stopped by a signal: got process {pid} in state T, wanted one that runs; let it go on: "
            f"kill -CONT {pid}",
            code="engine_stopped_by_signal",
        )


def _pid(connection: socket.socket) -> int:
    """Return the pid of whoever made the listening socket; 0 where the system does not tell, or not in our numbers."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0
    pid: int = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))[0]
    return pid


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2][:1]
    except OSError:
        return ""
