"""The instance's listening socket: borrowed before the agent starts, lent to each next gateway, never closed before us.

While no gateway is there, connections queue in the kernel, so a short absence refuses nobody. After a long one the
queued are reset, since they would otherwise hang for as long as their own timeouts allow.
"""

import json
import os
import socket
import struct
from collections.abc import Callable

from kt_supervisor.keeper import control, loop
from kt_supervisor.keeper.specification import Specification

BORROW_TIMEOUT_S = 5.0
BORROW_AGAIN_S = 1.0
_RETRY_S = 0.05
_MAX_ANSWER_BYTES = 4096
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with 0 seconds (socket(7)): close() sends RST


class Borrowing:
    """Asks a lender (`kt_ledger.lending`) without ever blocking the keeper.

    Exactly one of `done(listener, connection to the lender)` and `failed(why)` is called, unless `cancel` comes first.
    """

    def __init__(
        self,
        events: loop.Loop,
        path: str,
        instance_id: str,
        *,
        done: Callable[[socket.socket, socket.socket], None],
        failed: Callable[[str], None],
    ) -> None:
        self._loop = events
        self._path = path
        self._request = json.dumps({"op": "lend", "instance": instance_id}).encode() + b"\n"
        self._done = done
        self._failed = failed
        self._answer = b""
        self._received: list[int] = []
        self._stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stream.setblocking(False)
        self._limit = events.after(BORROW_TIMEOUT_S, self._too_late)
        self._retry: loop.Timer | None = events.after(0, self._connect)

    def cancel(self) -> None:
        """Give up silently."""
        self._release()
        self._loop.unwatch(self._stream.fileno())
        self._stream.close()
        for descriptor in self._received:
            os.close(descriptor)
        self._received = []

    def _connect(self) -> None:
        try:
            connect(self._stream, self._path)
            self._stream.send(self._request)
        except BlockingIOError:  # its queue is full (unix(7)): it is alive and busy
            self._retry = self._loop.after(_RETRY_S, self._connect)
            return
        except OSError as error:
            self._fail(str(error))
            return
        self._loop.watch(self._stream.fileno(), self._read)

    def _read(self, _events: int) -> None:
        try:
            data, received, _, _ = socket.recv_fds(self._stream, _MAX_ANSWER_BYTES, 4)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(str(error))
            return
        self._received += received
        self._answer += data
        if not data or self._answer.endswith(b"\n") or len(self._answer) >= _MAX_ANSWER_BYTES:
            self._judge()

    def _judge(self) -> None:
        try:
            answer = json.loads(self._answer)
            accepted = answer.get("ok") is True
            why = str(answer.get("error", "none was attached"))
        except (ValueError, AttributeError, RecursionError):
            accepted, why = False, f"got {self._answer[:80]!r}, wanted one line of JSON"
        if not accepted or not self._received:
            self._fail(why)
            return
        try:
            listener = socket.socket(fileno=self._received[0])
        except OSError as error:
            self._fail(f"what was lent is no socket: {error}")
            return
        del self._received[0]
        for spare in self._received:
            os.close(spare)
        self._release()
        self._loop.unwatch(self._stream.fileno())
        self._done(listener, self._stream)

    def _too_late(self) -> None:
        self._fail(f"no answer within {BORROW_TIMEOUT_S:g} s")

    def _fail(self, why: str) -> None:
        self.cancel()
        self._failed(f"no listening socket from {self._path}: {why}; wanted a gateway that lends it")

    def _release(self) -> None:
        self._limit.cancel()
        if self._retry is not None:
            self._retry.cancel()


class Kept:
    """The listening socket, and who uses it: the lender at first, later whoever borrowed it here."""

    def __init__(
        self, events: loop.Loop, listener: socket.socket, *, grace_s: float, note: Callable[[str], None]
    ) -> None:
        self._loop = events
        self._listener = listener
        self._grace_s = grace_s
        self._note = note
        self._users: set[object] = set()
        self._timer: loop.Timer | None = None
        self._resetting = False

    def used_by_lender(self, stream: socket.socket) -> None:
        """Watch the connection to the one that lent it: its end is the gateway's end."""
        self._users.add(stream)

        def ready(_events: int) -> None:
            try:
                if stream.recv(_MAX_ANSWER_BYTES):
                    return
            except BlockingIOError:
                return
            except OSError:
                pass
            self._loop.unwatch(stream.fileno())
            stream.close()
            self.left(stream)

        self._loop.watch(stream.fileno(), ready)

    def lend(self, connection: control.Connection) -> None:
        """Answer a borrower with the socket; it uses it until its connection ends.

        Raises:
            OSError: it could not be sent.
        """
        connection.send_descriptors({"ok": True}, [self._listener.fileno()])
        self._stop_resetting()
        self._users.add(connection)

    def left(self, user: object) -> None:
        """Say that a user's connection ended; unknown ones are ignored."""
        if user not in self._users:
            return
        self._users.discard(user)
        if not self._users:
            self._note("no gateway uses the listening socket")
            self._timer = self._loop.after(self._grace_s, self._start_resetting)

    def _start_resetting(self) -> None:
        self._timer = None
        self._resetting = True
        self._note(f"no gateway for {self._grace_s:g} s: connections are reset until one comes")
        self._listener.setblocking(False)
        self._loop.watch(self._listener.fileno(), self._reset_one)

    def _reset_one(self, _events: int) -> None:
        try:
            client, _ = self._listener.accept()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            client.close()
        except OSError:
            pass  # it left by itself, or descriptors are short: the next round sees

    def _stop_resetting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._resetting:
            self._resetting = False
            self._loop.unwatch(self._listener.fileno())


class Lending:
    """The instance's listening socket over a Run: borrowed once, or as often as it takes, then kept."""

    def __init__(self, events: loop.Loop, spec: Specification, *, note: Callable[[str], None]) -> None:
        self.kept: Kept | None = None
        self._loop = events
        self._spec = spec
        self._note = note
        self._borrowing: Borrowing | None = None
        self._again: loop.Timer | None = None

    def borrow(self, *, done: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Borrow it where the specification names a lender; exactly one is called, unless `cancel` comes first."""
        if self._spec.lend_from is None:
            done()
            return

        def lent(listening: socket.socket, lender: socket.socket) -> None:
            self._borrowing = None
            self.kept = Kept(self._loop, listening, grace_s=self._spec.gateway_grace_s, note=self._note)
            self.kept.used_by_lender(lender)
            done()

        def refused(why: str) -> None:
            self._borrowing = None
            failed(why)

        self._borrowing = Borrowing(
            self._loop, self._spec.lend_from, self._spec.instance_id, done=lent, failed=refused
        )

    def borrow_at_last(self) -> None:
        """Borrow it for an agent that runs already: whoever lends it may only be on its way."""

        def failed(why: str) -> None:
            self._note(why)
            self._again = self._loop.after(BORROW_AGAIN_S, self.borrow_at_last)

        self.borrow(done=lambda: None, failed=failed)

    def cancel(self) -> None:
        """Borrow no longer; what was borrowed is kept."""
        if self._borrowing is not None:
            self._borrowing.cancel()
            self._borrowing = None
        if self._again is not None:
            self._again.cancel()


def connect(stream: socket.socket, path: str) -> None:
    """Connect to a Unix socket at a path of any length, by visiting its folder: one thread, so nobody notices.

    Raises:
        OSError: as `socket.connect`.
    """
    folder, _, name = path.rpartition("/")
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chdir(folder or "/")
        stream.connect(name)
    finally:
        os.fchdir(here)
        os.close(here)
