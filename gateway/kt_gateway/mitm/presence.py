"""Whether the other end of a TCP connection is still there, as far as the kernel knows at this moment.

A peer that closed and one that only shut down its sending side look the same on the wire: both sent a FIN. On Linux
the other end of a loopback connection is a socket of the same kernel, and that can be asked about (sock_diag(7)): one
that nobody has open any more has no inode.
"""

import contextlib
import errno
import socket
import struct
from typing import Protocol

_TCP_ESTABLISHED = 1  # include/net/tcp_states.h
_TCP_FIN_WAIT1, _TCP_FIN_WAIT2, _TCP_CLOSE_WAIT = 4, 5, 8

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_MESSAGE = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_ADDRESSES = struct.Struct(">HH16s16s")
_ANY_COOKIE = struct.pack("=I8s", 0, b"\xff" * 8)
_ANSWER = struct.Struct("=BBBB")
_INODE_AT = _MESSAGE.size + _ANSWER.size + _ADDRESSES.size + len(_ANY_COOKIE) + 4 * 4
ASK_TIMEOUT_S = 0.2


class Endpoint(Protocol):
    """What is asked of a socket; asyncio's stand-in for one has it too."""

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        """Return an option."""
        ...

    def fileno(self) -> int:
        """Return the descriptor."""
        ...


def has_left(endpoint: Endpoint, *, or_ended: bool) -> bool:
    """Return whether the peer has closed or reset the connection.

    Args:
        endpoint: our end.
        or_ended: whether a peer that sends no more, but may well still read, counts as one that left.
    """
    try:
        state = _state(endpoint)
        if state == _TCP_ESTABLISHED:
            return False
        return or_ended or state != _TCP_CLOSE_WAIT or not _still_reads(endpoint)
    except OSError:
        return True


def _state(endpoint: Endpoint) -> int:
    """Return our end's state; elsewhere than on Linux only what a look at the next byte shows."""
    if hasattr(socket, "TCP_INFO"):
        return endpoint.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    with socket.socket(fileno=socket.dup(endpoint.fileno())) as peek, contextlib.suppress(BlockingIOError):
        if not peek.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            return _TCP_CLOSE_WAIT
    return _TCP_ESTABLISHED


def _still_reads(endpoint: Endpoint) -> bool:
    """Return whether a process has the other end open; False where nobody can be asked."""
    if not hasattr(socket, "AF_NETLINK"):
        return False
    with socket.socket(fileno=socket.dup(endpoint.fileno())) as ours:
        if ours.family != socket.AF_INET:
            return False
        near, far = ours.getsockname(), ours.getpeername()
    state, inode = _ask(local=far, remote=near)
    return inode != 0 and state in (_TCP_FIN_WAIT1, _TCP_FIN_WAIT2)


def _ask(*, local: tuple[str, int], remote: tuple[str, int]) -> tuple[int, int]:
    """Return (state, inode) of the socket between these addresses; raises OSError, as where it does not exist."""
    hosts = (socket.inet_aton(local[0]), socket.inet_aton(remote[0]))
    request = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
    request += _ADDRESSES.pack(local[1], remote[1], *hosts) + _ANY_COOKIE
    head = _MESSAGE.pack(_MESSAGE.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(ASK_TIMEOUT_S)
        kernel.send(head + request)
        answer = kernel.recv(4096)
    if len(answer) < _INODE_AT + 4 or _MESSAGE.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        raise OSError(errno.ENOTCONN, "no such socket here")
    state: int = _ANSWER.unpack_from(answer, _MESSAGE.size)[1]
    inode: int = struct.unpack_from("=I", answer, _INODE_AT)[0]
    return state, inode
