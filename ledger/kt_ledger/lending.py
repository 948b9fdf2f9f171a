"""How listening sockets change hands: borrow one from whoever keeps it, over a Unix socket, by SCM_RIGHTS.

The gateway lends its listeners to keepers (`gateway/lend.sock`); a keeper lends them to the next gateway
(`keeper.sock`). The protocol is one line each way. The borrower says `{"op": "lend", "instance": ID}`; the lender
answers `{"ok": true}` with the descriptor attached, or `{"ok": false, "error": "..."}`. The borrower then keeps the
connection open for as long as it uses the socket: end of file tells each side that the other is gone.
"""

import array
import json
import os
import socket
from pathlib import Path

from kt_ledger import unix_socket

MAX_LINE_BYTES = 4096
ANSWER_TIMEOUT_S = 5.0


class LendingRefused(Exception):
    """The other process keeps no such listening socket, or is gone."""


def borrow(path: Path, instance_id: str) -> tuple[socket.socket, socket.socket]:
    """Return (listening socket, connection to the lender).

    Close the connection when the socket is no longer used.

    Raises:
        LendingRefused: the lender is not there, says no, or does not answer within five seconds.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(ANSWER_TIMEOUT_S)
        unix_socket.connect(connection, path)
        connection.sendall(json.dumps({"op": "lend", "instance": instance_id}).encode() + b"\n")
        answer, descriptors = _receive(connection)
    except OSError as error:
        connection.close()
        raise LendingRefused(f"no listening socket from {path}: {error}") from error
    if not answer.get("ok") or not descriptors:
        connection.close()
        raise LendingRefused(f"no listening socket from {path}: {answer.get('error', 'none was attached')}")
    connection.settimeout(None)
    return socket.socket(fileno=descriptors[0]), connection


def lend(connection: socket.socket, listener: socket.socket) -> None:
    """Answer a borrower on `connection` with a duplicate of `listener`."""
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))
    connection.sendmsg([b'{"ok": true}\n'], [rights])


def refuse(connection: socket.socket, why: str) -> None:
    """Answer a borrower on `connection` with a reason."""
    connection.sendall(json.dumps({"ok": False, "error": why}).encode() + b"\n")


def _receive(connection: socket.socket) -> tuple[dict[str, object], list[int]]:
    line = b""
    descriptors: list[int] = []
    while not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
        data, received, _, _ = socket.recv_fds(connection, MAX_LINE_BYTES, 4)
        descriptors += received
        if not data:
            break
        line += data
    try:
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError
    except ValueError as error:
        _close(descriptors)
        raise OSError(f"got {line[:80]!r}, wanted one line with a JSON object") from error
    kept = descriptors[:1] if answer.get("ok") is True else []
    _close(descriptors[len(kept) :])
    return answer, kept


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
