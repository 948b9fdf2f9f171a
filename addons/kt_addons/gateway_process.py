"""The gateway as a process: one per state directory, composed here and nowhere else.

Order of life: lock, journal, mitmproxy, lend socket, admin socket, `gateway.json`. Order of death: listeners,
streams under way (a while), what is left is recorded and reset, journal, lock.
"""

import asyncio
import dataclasses
import fcntl
import json
import logging
import os
import signal
import socket
from collections import Counter
from pathlib import Path
from typing import Any

from kt_addons import identity, listening_socket, proxy_master
from kt_addons.dispatcher import Dispatcher
from kt_addons.instance_meter import HEAD_TIMEOUT_S, InstanceMeter
from kt_gateway import admin, failpoints
from kt_gateway.http1.door import RulesInvalid
from kt_gateway.journal.writer import JournalWriter
from kt_gateway.lending_server import LendingServer
from kt_gateway.mitm.hooks import GatewayStops
from kt_ledger import clock, durable, ids, layout, messages, unix_socket
from kt_ledger.version import VERSION

logger = logging.getLogger(__name__)

TERM_TIMEOUT_S = 10.0
"""How long streams under way may go on after SIGTERM."""
STOP_TIMEOUT_S = 3.0
POLL_S = 0.02
LOOK_AT_HOME_S = 2.0


class AlreadyRunning(Exception):
    """Another gateway serves this state directory; it was left alone."""


class Gateway:
    """Everything that this process holds."""

    def __init__(
        self, files: layout.GatewayLayout, who: identity.Identity, *, head_timeout_s: float = HEAD_TIMEOUT_S
    ) -> None:
        self._head_timeout_s = head_timeout_s
        self._files = files
        self._who = who
        self._lock = take_lock(files)
        self._moved: asyncio.Future[None] | None = None
        self._changing = asyncio.Lock()
        self._pending: Counter[str] = Counter()  # changes by instance that wait for, or have, the lock
        self._lenders: dict[str, socket.socket] = {}  # connections to the keepers that we borrowed from
        self._ended = asyncio.Event()
        self._draining = False
        self._writer = JournalWriter(
            files.journal(who.incarnation),
            header=who.to_json(),
            slow_sync_s=failpoints.slow_sync_s(),
            on_progress=self._progressed,
        )
        self._dispatcher = Dispatcher()
        self._master, self._servers = proxy_master.make(
            self._dispatcher, authorities=files.root / "authorities.pem"
        )
        engine_lock = layout.StateLayout(files.root.parent).engine_lock
        self._admin = admin.Admin(self, uid=os.getuid(), engine_lock=engine_lock)
        self._lending = LendingServer(self._lendable, uid=os.getuid())

    async def run(self) -> None:
        """Serve until told to stop."""
        proxy = asyncio.ensure_future(self._master.run())
        self._lending.start(unix_socket.bind(self._files.lend))
        await self._admin.start(unix_socket.bind(self._files.admin))
        durable.replace_file(self._files.record, _json(self._who.to_json()))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminate)
        self._look_at_home(os.open(self._files.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        ended = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait([ended, proxy], return_when=asyncio.FIRST_COMPLETED)
        await self._stop_streams()
        await self._admin.stop()
        self._master.shutdown()
        await proxy
        self._writer.close()

    # -- what the admin socket asks ----------------------------------------------------------------------------
    def status(self) -> messages.Status:
        """Return who we are and what we hold."""
        ports = {meter.instance_id: meter.door.listener.port for meter in self._dispatcher.meters.values()}
        return messages.Status(
            **self._who.to_json(),
            listeners=ports,
            in_flight=self._dispatcher.in_flight,
            held=self._dispatcher.held,
            journal_healthy=self._writer.healthy,
        )

    async def put(self, listener: messages.Listener) -> int:
        """Make, or change, a listener; return its port. Raises PortTaken, ListenerInvalid."""
        if self._draining:
            raise admin.ListenerInvalid("this gateway is draining: ask the one that follows")
        try:
            if not self._pending[listener.instance_id] and self._replaced(listener):
                return listener.port  # a stop waits for nobody's slow keeper
            self._pending[listener.instance_id] += 1
            try:
                async with self._changing:
                    return await self._put(listener)
            finally:
                self._pending[listener.instance_id] -= 1
        except RulesInvalid as error:
            raise admin.ListenerInvalid(str(error)) from error

    def _replaced(self, listener: messages.Listener) -> bool:
        """Change the rules of a listener that stays where it is; False where there is more to do."""
        known = self._dispatcher.meters.get(listener.instance_id)
        if known is None or known.door.listener.port != listener.port:
            return False
        known.replace(listener)
        return True

    async def _put(self, listener: messages.Listener) -> int:
        if not isinstance(listener.port, int) or not 0 <= listener.port <= 65535:
            raise admin.ListenerInvalid(f"got port {listener.port!r}, wanted a number up to 65535")
        if self._draining:
            raise admin.ListenerInvalid("this gateway began to drain: ask the one that follows")
        if self._replaced(listener):
            return listener.port
        known = self._dispatcher.meters.get(listener.instance_id)
        endpoint, lender = await listening_socket.obtain(listener)
        listener = dataclasses.replace(listener, port=endpoint.getsockname()[1])
        try:
            meter = InstanceMeter(
                listener,
                endpoint=endpoint,
                writer=self._writer,
                time_source=clock.SystemClock(),
                new_id=ids.new_id,
                head_timeout_s=self._head_timeout_s,
            )
        except RulesInvalid:
            endpoint.close()
            if lender is not None:
                lender.close()
            raise
        if known is not None:
            self._forget(listener.instance_id)
        if lender is not None:
            self._lenders[listener.instance_id] = lender
        self._dispatcher.add(meter)
        await self._serve()
        return listener.port

    async def delete(self, instance_id: str) -> bool:
        """Remove a listener; False where there was none."""
        async with self._changing:
            if instance_id not in self._dispatcher.meters:
                return False
            self._forget(instance_id)
            await self._serve()
            return True

    def key(self, instance_id: str) -> messages.ListenerKey | None:
        """Return the key of a listener; None where there is no such listener."""
        meter = self._dispatcher.meters.get(instance_id)
        return None if meter is None else messages.ListenerKey(upstream_api_key=meter.door.key)

    def position(self) -> tuple[int, int]:
        """Return how far the journal is written."""
        return self._writer.position

    async def moved(self) -> None:
        """Wait until the journal has been written to."""
        if self._moved is None or self._moved.done():
            self._moved = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._moved)

    async def flush(self) -> None:
        """Write what has only been counted so far."""
        for meter in self._dispatcher.meters.values():
            meter.write_counts()

    async def drain(self, timeout_s: float) -> None:
        """Stop accepting, let the next gateway begin, wait for streams under way, and let the process end."""
        async with self._changing:
            if not self._draining:
                self._draining = True
                for meter in self._dispatcher.meters.values():
                    meter.drain()
                await self._servers.serve([])
                await self._make_way()
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self._dispatcher.in_flight and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)  # a call ends in many places; twenty milliseconds do not matter here
        self._ended.set()

    # -- inside ------------------------------------------------------------------------------------------------
    async def _make_way(self) -> None:
        """Leave sockets and lock to a following gateway."""
        await self._lending.stop()
        for name in (self._files.admin, self._files.lend):
            name.unlink(missing_ok=True)
        os.close(self._lock)

    def _terminate(self) -> None:
        asyncio.ensure_future(self.drain(TERM_TIMEOUT_S))  # noqa: RUF006  # the process ends with it

    def _look_at_home(self, home: int) -> None:
        """End once our folder was deleted: nobody can reach us any more, and nothing that we record."""
        if os.fstat(home).st_nlink:
            asyncio.get_running_loop().call_later(LOOK_AT_HOME_S, self._look_at_home, home)
        else:
            logger.error("the folder %s was removed: this gateway ends", self._files.root)
            self._terminate()

    def _progressed(self) -> None:
        if self._moved is not None and not self._moved.done():
            self._moved.set_result(None)

    def _lendable(self, instance_id: str) -> socket.socket | None:
        meter = self._dispatcher.meters.get(instance_id)
        return None if meter is None else meter.endpoint

    def _forget(self, instance_id: str) -> None:
        self._dispatcher.remove(instance_id)
        self._lending.recall(instance_id)
        lender = self._lenders.pop(instance_id, None)
        if lender is not None:
            lender.close()

    async def _serve(self) -> None:
        await self._servers.serve([meter.spec for meter in self._dispatcher.meters.values()])

    async def _stop_streams(self) -> None:
        """Record and reset what is still under way, then close everything that is open towards agents."""
        connections = list(self._servers.connections.values())
        for connection in connections:
            await connection.server_event(GatewayStops())
        deadline = asyncio.get_running_loop().time() + STOP_TIMEOUT_S
        while self._servers.connections and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)


def take_lock(files: layout.GatewayLayout) -> int:
    """Return the descriptor that holds the gateway's lock; raises AlreadyRunning."""
    files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(files.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise AlreadyRunning(
            f"a gateway already serves {files.root.parent}: it holds {files.lock}; "
            "ask it to drain (POST /v1/drain on its admin socket) or stop it first"
        ) from error
    return lock


async def serve(state: Path, *, head_timeout_s: float = HEAD_TIMEOUT_S) -> None:
    """Run a gateway for the state directory `state` until it is told to stop. Raises AlreadyRunning."""
    who = identity.of_this_process(version=VERSION)
    await Gateway(layout.StateLayout(state).gateway, who, head_timeout_s=head_timeout_s).run()


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode()
