"""Unix sockets at paths of any length.

The kernel takes at most 107 bytes of path (103 on macOS). A longer one is reached through a short name for the same
folder: `/proc/self/fd/N` on Linux, a symbolic link in a private temporary folder elsewhere.
"""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

MAX_PATH_BYTES = 100
_SO_PEERPIDFD = 77  # <asm-generic/socket.h>; Python has no name for it before 3.15
_TIMEVAL = struct.Struct(
    "@ll"
)  # struct timeval; little endian, so that a shorter second member is right as well
_PEER = struct.Struct("3i")  # struct ucred (unix(7)): pid, uid, gid


@contextlib.contextmanager
def reachable(path: Path) -> Iterator[str]:
    """Yield a name of at most 100 bytes for the socket at `path`, valid inside the block only."""
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield str(path)
        return
    if Path("/proc/self/fd").is_dir():
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{folder}/{path.name}"
        finally:
            os.close(folder)
        return
    import tempfile  # half of the cost of this module, wanted only where there is no /proc

    with tempfile.TemporaryDirectory(prefix="kt-", dir="/tmp") as short:
        link = Path(short) / "d"
        link.symlink_to(path.parent)
        yield f"{link}/{path.name}"


def peer_is(connection: socket.socket, uid: int) -> bool:
    """Whether the process at the other end runs under `uid` (where the system says so; the file is 0600 anyway)."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, peer_uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return bool(peer_uid == uid)


def connect(client: socket.socket, path: Path) -> None:
    """Connect `client` to the Unix socket at `path`, within its timeout where it has one.

    Raises:
        OSError: as `socket.connect`.
    """
    timeout_s = client.gettimeout()
    with reachable(path) as name:
        if timeout_s:
            _connect_within(client, name, timeout_s)
        else:
            client.connect(name)


def _connect_within(client: socket.socket, name: str, timeout_s: float) -> None:
    # Python's own timeout makes the socket a non-blocking one, and such a connect(2) fails with EAGAIN where the
    # server's queue is full for this moment; a blocking one waits, for as long as SO_SNDTIMEO says (socket(7)).
    whole_s = int(timeout_s)
    client.settimeout(None)
    client.setsockopt(
        socket.SOL_SOCKET,
        socket.SO_SNDTIMEO,
        _TIMEVAL.pack(whole_s, max(1, int((timeout_s - whole_s) * 1e6))),
    )
    try:
        client.connect(name)
    finally:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(0, 0))
        client.settimeout(timeout_s)


def names_peers() -> bool:
    """Tell whether the system says which process made a connection."""
    return hasattr(socket, "SO_PEERCRED")


def peer_pid(connection: socket.socket) -> int | None:
    """Return the pid of the process that made this connection; None where the system does not say."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    pid, _, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid or None  # 0: it lives in a PID namespace that we do not see into


def peer_is_there(connection: socket.socket) -> bool:
    """Tell whether the process that made this connection has not been reaped, so that its pid is still its own.

    Ask after having read of /proc/PID: a yes says that it was read of that process, and of no later one with its
    number. A kernel without SO_PEERPIDFD (before Linux 6.5) cannot tell: the answer is then yes.
    """
    try:
        handle = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        return error.errno not in (errno.ESRCH, errno.EINVAL)
    try:
        return _is_alive(handle)
    finally:
        os.close(handle)


def _is_alive(handle: int) -> bool:
    """Tell whether a pidfd's process has not been reaped: its number is then -1 (pidfd_open(2), fdinfo)."""
    with open(f"/proc/self/fdinfo/{handle}", "rb") as facts:
        numbers = [line.split()[1] for line in facts if line.startswith(b"Pid:")]
    return numbers != [b"-1"]


def bind(path: Path, *, backlog: int = 128) -> socket.socket:
    """Return a listening Unix socket at `path`: 0600 from its birth, replacing a stale one by rename.

    Call it only under a lock that makes this process the sole owner of `path`.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    # Linux gives the file the mode of the socket, less the umask (unix_bind in af_unix.c): private whatever the umask
    # is. Elsewhere the umask alone decides, for this moment and for all threads.
    os.fchmod(server.fileno(), 0o600)
    before = os.umask(0o177)
    try:
        with reachable(fresh) as name:
            server.bind(name)
        server.listen(backlog)
        fresh.rename(path)
    except OSError:
        server.close()
        fresh.unlink(missing_ok=True)
        raise
    finally:
        os.umask(before)
    return server
