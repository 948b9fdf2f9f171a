"""The second reference to the instance's listening socket: kept while the agent lives, lent to the next gateway.

Where no gateway uses it for longer than the grace, queued connections are accepted and reset, so that an agent fails
instead of hanging; the next borrower ends that.
"""

import contextlib
import selectors
import socket
import struct
from pathlib import Path
from typing import Any

from kt_ledger import lending
from kt_supervisor.keeper.control import Connection

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, zero seconds: close() sends RST (socket(7))


class KeptListener:
    """One borrowed socket; `in_use` while a gateway is known to serve it."""

    def __init__(
        self,
        borrowed: socket.socket,
        lender: socket.socket,
        selector: selectors.BaseSelector,
        *,
        grace_s: float,
    ) -> None:
        self._listener = borrowed
        self._listener.setblocking(False)
        self._selector = selector
        self._grace_s = grace_s
        self._users: set[object] = {lender}
        self._resets_at_s: float | None = None
        self._resetting = False
        self._now_s = 0.0
        lender.setblocking(False)
        selector.register(lender, selectors.EVENT_READ, lambda: self._lender_spoke(lender))

    def lend(self, connection: Connection) -> None:
        """Hand a duplicate to the borrower on `connection`, who keeps the connection while it serves."""
        lending.lend(connection.socket, self._listener)
        self._users.add(connection)
        connection.on_close = lambda: self._user_left(connection)
        self._resets_at_s = None
        self._stop_resetting()

    def deadline_s(self) -> float | None:
        """Return when `tick` is wanted; None while a gateway serves."""
        return None if self._resetting else self._resets_at_s

    def tick(self, now_s: float) -> None:
        """Let time pass."""
        self._now_s = now_s
        if self._resets_at_s is not None and now_s >= self._resets_at_s and not self._resetting:
            self._resetting = True
            self._selector.register(self._listener, selectors.EVENT_READ, self._reset_one)

    def close(self) -> None:
        """Give the socket up."""
        self._stop_resetting()
        self._listener.close()

    def _lender_spoke(self, lender: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                data = lender.recv(256)
            except ConnectionError:
                data = b""
            if not data:
                self._selector.unregister(lender)
                lender.close()
                self._user_left(lender)

    def _user_left(self, user: object) -> None:
        self._users.discard(user)
        if not self._users:
            self._resets_at_s = self._now_s + self._grace_s

    def _reset_one(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except OSError:
            return
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        peer.close()

    def _stop_resetting(self) -> None:
        if self._resetting:
            self._resetting = False
            self._selector.unregister(self._listener)


def borrow(path: str, instance_id: str, selector: selectors.BaseSelector, **options: Any) -> KeptListener:
    """Borrow an instance's listener from the gateway at `path`; raises `lending.LendingRefused`."""
    listener, lender = lending.borrow(Path(path), instance_id)
    return KeptListener(listener, lender, selector, **options)
