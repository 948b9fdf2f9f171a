"""Which listeners the gateway shall have, and having it have them: one an instance, wherever a provider is configured.

Law: what is wanted is decided here and remembered in memory; a gateway that comes back gets all of it again.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass, replace

from kt_ledger.layout import StateLayout
from kt_ledger.messages import PROBE_PATH, Grant, Listener, Status
from kt_ledger.records import InstanceRow, RunRow
from kt_ledger.store import StoreUnavailable
from kt_supervisor.engine.gateway import client as gateway_client
from kt_supervisor.engine.gateway import metering, ports
from kt_supervisor.engine.gateway.client import GatewayAway, GatewayClient, ListenerRefused, PortTaken
from kt_supervisor.engine.gateway.link import GatewayLink
from kt_supervisor.engine.gateway.metering import Upstream
from kt_supervisor.engine.problems import Refused
from kt_supervisor.engine.tasks import Tasks
from kt_supervisor.engine.writer import Writer

logger = logging.getLogger(__name__)
TRIES = 100
PROBED = 204
AGAIN_S = 1.0
AT_ONCE_S = 2.0
"""How long a stop or a pause waits for the gateway: one that hangs must not hold up what ends the agent itself."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A listener as we want it. `doubtful`: a live Run's, made after a restart; a gateway that has it knows better."""

    listener: Listener
    doubtful: bool = False


class Listeners:
    """All listeners of one state directory."""

    def __init__(self, files: StateLayout, *, writer: Writer, tasks: Tasks) -> None:
        self._files = files
        self._tasks = tasks
        self._writer = writer
        self._wishes: dict[str, Wish] = {}
        self._left_alone: set[str] = set()
        self._kept_by_the_gateway: set[str] = set()  # live Runs whose provider's key this engine never had
        self.link: GatewayLink  # set by whoever composes the two
        self.notices: dict[str, list[str]] = {}

    async def serve(
        self, row: InstanceRow, upstream: Upstream, *, run: RunRow | None = None
    ) -> tuple[int, list[str]]:
        """Have a listener; return its port and what the operator should know.

        Args:
            row: the instance; its port is kept where it has one.
            run: the Run that may call; None: every call is refused as `instance_stopped`.

        Raises:
            GatewayAway, ListenerRefused: there is none now. Refused: no port is free.
        """
        client = await self.link.client()
        wanted = self._listener(row, upstream, run)
        self._kept_by_the_gateway.discard(row.id)
        notices = self.notices.pop(row.id, [])
        if wanted.port:
            try:
                await client.put(wanted)
                self._wishes[row.id] = Wish(wanted)
                return wanted.port, notices
            except PortTaken:
                notices.append(f"port {wanted.port} was taken by another program; {row.name} has a new one")
        return await self._allocate(client, wanted), notices

    async def probe(self, port: int, token: str) -> None:
        """Call the listener once with its token; the gateway answers by itself. Raises GatewayAway."""
        status = await gateway_client.probe(metering.origin(port, token) + PROBE_PATH)
        if status != PROBED:
            raise GatewayAway(f"the listener at port {port} answered {status}, wanted {PROBED}")

    def remember(self, row: InstanceRow, upstream: Upstream, run: RunRow | None) -> None:
        """Want a listener that the gateway may well have, as after a restart of the engine."""
        wanted = self._listener(row, upstream, run)
        if upstream.key_missing:
            # Without the key the agent's own header, which holds its token, would reach the provider.
            wanted = replace(wanted, grants=())
            if run is not None:
                self._kept_by_the_gateway.add(row.id)
        self._wishes[row.id] = Wish(wanted, doubtful=run is not None)
        self.link.need()

    def may_be_restored(self) -> bool:
        """Tell whether another gateway could be given all that the one that is there knows."""
        return not self._kept_by_the_gateway and not self._left_alone

    def leave_alone(self, instance_id: str) -> None:
        """Neither change nor remove what the gateway has for an instance, until something else is wanted."""
        self._left_alone.add(instance_id)

    async def withdraw(self, instance_id: str) -> None:
        """Let nobody call any more; the listener stays. A gateway that is away is told when it comes."""
        wish = self._wishes.get(instance_id)
        self._kept_by_the_gateway.discard(instance_id)
        if wish is None:
            return
        closed = replace(wish.listener, grants=(), borrow_from=None, upstream_api_key=None, hold_s=None)
        await self._tell(closed)

    async def rekey(self, instance_id: str, run: RunRow, key: str) -> bool:
        """Have the calls of a live Run carry another key from now on; False where the gateway is told later.

        A listener that was closed since nobody knew its key is open again.
        """
        wish = self._wishes.get(instance_id)
        if wish is None:
            return False
        self._kept_by_the_gateway.discard(instance_id)
        grants = (Grant(run_id=run.id, token=run.token),)
        return await self._tell(replace(wish.listener, grants=grants, upstream_api_key=key))

    async def hold(self, instance_id: str, hold_s: float) -> None:
        """Have new calls wait, each at most `hold_s`; a gateway that is away is told when it comes."""
        await self._change(instance_id, hold_s=hold_s)

    async def release(self, instance_id: str) -> None:
        """Let calls go again, those that wait and new ones."""
        await self._change(instance_id, hold_s=None)

    async def _change(self, instance_id: str, *, hold_s: float | None) -> None:
        wish = self._wishes.get(instance_id)
        if wish is not None:
            await self._tell(replace(wish.listener, hold_s=hold_s))

    async def _tell(self, wanted: Listener) -> bool:
        """Want a listener that is there to be as this, and tell the gateway now, or else later; True for now."""
        self._wishes[wanted.instance_id] = Wish(wanted)
        if client := self.link.here:
            try:
                await client.put(wanted, timeout_s=AT_ONCE_S)
                return True
            except (GatewayAway, ListenerRefused, PortTaken) as error:
                logger.warning("the listener of %s is changed later: %s", wanted.name, error)
                self._tell_later(wanted.instance_id)
        return False

    def _tell_later(self, instance_id: str) -> None:
        self._tasks.start(f"listener of {instance_id}", self._tell_again(instance_id))

    async def _tell_again(self, instance_id: str) -> None:
        """Tell the gateway what is wanted until it has taken it, or something else is wanted."""
        wish = self._wishes.get(instance_id)
        while wish is not None:
            await asyncio.sleep(AGAIN_S)
            client = self.link.here
            if self._wishes.get(instance_id) is not wish or client is None:
                return  # one that comes back is told everything
            with contextlib.suppress(GatewayAway, ListenerRefused, PortTaken):
                await client.put(wish.listener)
                return

    async def drop(self, instance_id: str) -> None:
        """Want no listener any more."""
        self._kept_by_the_gateway.discard(instance_id)
        if self._wishes.pop(instance_id, None) and (client := self.link.here):
            try:
                await client.delete(instance_id)
            except GatewayAway as error:
                logger.warning("the gateway is told later that %s has no listener: %s", instance_id, error)

    def port(self, instance_id: str) -> int | None:
        """Return the port that an instance's listener has, or shall have."""
        wish = self._wishes.get(instance_id)
        return wish.listener.port or None if wish else None

    def is_closed(self, instance_id: str) -> bool:
        """Tell whether the listener, as this engine last asked for it, lets nobody call."""
        wish = self._wishes.get(instance_id)
        return wish is not None and not wish.listener.grants

    async def restore(self, client: GatewayClient, status: Status) -> None:
        """Give a gateway that has just come everything that is wanted; what is not is removed."""
        for instance_id in set(status.listeners) - set(self._wishes) - self._left_alone:
            await client.delete(instance_id)
        for instance_id, wish in list(self._wishes.items()):
            wanted = wish.listener
            if not (wish.doubtful and status.listeners.get(instance_id) == wanted.port):
                await self._restore(client, wanted)

    async def _restore(self, client: GatewayClient, wanted: Listener) -> None:
        try:
            if wanted.port:
                await client.put(wanted)
                return
        except PortTaken as error:
            if wanted.borrow_from is not None:
                logger.error("%s runs, and its port cannot be had now: %s", wanted.name, error)
                self._tell_later(wanted.instance_id)
                return
            said = f"port {wanted.port} was taken by another program; {wanted.name} has a new one"
            self.notices.setdefault(wanted.instance_id, []).append(said)
        except ListenerRefused as error:
            logger.error("no listener for %s: %s", wanted.name, error)
            return
        try:
            await self._allocate(client, wanted)
        except (Refused, StoreUnavailable) as error:
            logger.error("no listener for %s: %s", wanted.name, error)

    async def _allocate(self, client: GatewayClient, wanted: Listener) -> int:
        rows = await self._writer.do(lambda store: store.instances())
        taken = {row.port for row in rows if row.port} | {w.listener.port for w in self._wishes.values()}
        offered = ports.candidates(self._files.root, taken=taken, outgoing=ports.ephemeral())
        for _, port in zip(range(TRIES), offered, strict=False):
            try:
                await client.put(replace(wanted, port=port))
            except PortTaken:
                continue
            self._wishes[wanted.instance_id] = Wish(replace(wanted, port=port))
            await self._writer.do(lambda store, port=port: store.set_port(wanted.instance_id, port))  # type: ignore[misc]
            return port
        raise Refused(
            f"no port for {wanted.name}: got {TRIES} ports that are taken, wanted a free one in "
            f"{ports.FIRST}-{ports.LAST} of 127.0.0.1; end what holds them",
            code="no_port",
        )

    def _listener(self, row: InstanceRow, upstream: Upstream, run: RunRow | None) -> Listener:
        return Listener(
            instance_id=row.id,
            name=row.name,
            port=row.port or self.port(row.id) or 0,
            upstream=upstream.url,
            grants=(Grant(run_id=run.id, token=run.token),) if run else (),
            listener_auth=upstream.auth,
            upstream_api_key=upstream.key if run else None,
            borrow_from=str(self._files.run(run.id).socket) if run else None,
        )
