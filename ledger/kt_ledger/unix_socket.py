"""Unix sockets at paths of any length.

The kernel takes at most 107 bytes of path (103 on macOS). A longer one is reached through a short name for the same
folder: `/proc/self/fd/N` on Linux, a symbolic link in a private temporary folder elsewhere.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

MAX_PATH_BYTES = 100
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
    """Connect `client` to the Unix socket at `path`.

    Raises:
        OSError: as `socket.connect`.
    """
    with reachable(path) as name:
        client.connect(name)


def bind(path: Path, *, backlog: int = 128) -> socket.socket:
    """Return a listening Unix socket at `path`: 0600 from its birth, replacing a stale one by rename.

    Call it only under a lock that makes this process the sole owner of `path`.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
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
