"""The gateway as the engine sees it: found or started, followed, and brought back.

It is spawned detached and outlives the engine; one that is there is adopted, whoever started it. With
`KT_GATEWAY=external` none is ever started: it is waited for.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from kt_ledger.layout import GatewayLayout
from kt_ledger.messages import Status
from kt_supervisor.engine import environment, state_dir
from kt_supervisor.engine.gateway import succession
from kt_supervisor.engine.gateway.client import GatewayAway, GatewayClient, ListenerRefused
from kt_supervisor.engine.gateway.health import Health
from kt_supervisor.engine.gateway.journals import Journals
from kt_supervisor.engine.spawn import Spawner
from kt_supervisor.engine.tasks import Tasks
from kt_supervisor.keeper import proctree

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.03
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
UP_TIMEOUT_S = 20.0
"""How long a start waits for a gateway; one comes up in about a second."""

Connected = Callable[[GatewayClient, Status], Awaitable[None]]
Lost = Callable[[str, Status | None], None]


class GatewayLink:
    """One state directory's gateway. `on_connected` brings the listeners back; run `run` beside everything else.

    `on_lost` is told of each gateway that went away, or did not come up, without having been asked to.
    """

    def __init__(
        self,
        files: GatewayLayout,
        *,
        spawner: Spawner,
        journals: Journals,
        tasks: Tasks,
        on_connected: Connected,
        may_follow: Callable[[], bool],
        on_lost: Lost = lambda _what, _status: None,
    ) -> None:
        self._files = files
        self._spawner = spawner
        self._journals = journals
        self._tasks = tasks
        self._on_connected = on_connected
        self._on_lost = on_lost
        self._may_follow = may_follow
        self._health = Health(files)
        self._external = environment.gateway_is_external()
        self._needed = asyncio.Event()
        self._up = asyncio.Event()
        self._ending = False
        self._starting = False
        self._client: GatewayClient | None = None
        self._last: Status | None = None

    def need(self) -> None:
        """Have a gateway from now on."""
        self._needed.set()

    @property
    def here(self) -> GatewayClient | None:
        """The gateway, where one is connected at this moment."""
        return self._client if self._up.is_set() else None

    async def client(self, *, within_s: float = UP_TIMEOUT_S) -> GatewayClient:
        """Return the gateway, once it is there and has its listeners. Raises GatewayAway."""
        self.need()
        try:
            await asyncio.wait_for(self._up.wait(), within_s)
        except TimeoutError:
            whose = "KT_GATEWAY=external: start it" if self._external else f"see {self._files.log}"
            raise GatewayAway(
                f"got no gateway within {within_s:g} s, wanted one that answers; {whose}"
            ) from None
        assert self._client is not None
        return self._client

    async def flush(self) -> None:
        """Have the gateway's journal hold all that it has counted, where one is here and answers."""
        if client := self.here:
            try:
                await client.flush()
            except (GatewayAway, ListenerRefused) as error:
                logger.warning("the gateway did not flush: %s", error)

    async def status(self) -> Status | None:
        """Return what the gateway says of itself; None where none is connected."""
        if self._client is None:
            return None
        try:
            return await self._client.status()
        except GatewayAway:
            return None

    async def run(self) -> None:
        """Find, start and follow gateways until cancelled."""
        pause_s = FIRST_PAUSE_S
        clock = asyncio.get_running_loop()
        if self._external or self._files.admin.exists():
            self.need()
        while not self._ending:
            await self._needed.wait()
            came_s = clock.time()
            if not await self._follow_one():
                await self._start_one(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            elif clock.time() - came_s > LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S

    async def drain(self, timeout_s: float) -> None:
        """End the gateway, whoever started it, and start no other; returns once its lock is free."""
        self._ending = True
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        last: Status | None = None
        # One that is only just starting, or connected to nobody yet, is ended as well.
        while self._starting or self._is_there(last):
            if asyncio.get_running_loop().time() > deadline_s:
                return
            try:
                async with GatewayClient(self._files.admin) as client:
                    last = await client.status()
                    await client.drain(timeout_s)
            except GatewayAway:
                pass
            await asyncio.sleep(LOOK_EVERY_S)

    def _is_there(self, last: Status | None) -> bool:
        """Tell whether a gateway accepts, or the `last` one still finishes; ours has finished once it is no process."""
        if state_dir.is_held(self._files.lock):
            return True
        if last is None:
            return False
        if state_dir.is_held(self._files.journal(last.incarnation) / "lock"):
            return True
        process = None if self._external else proctree.read(last.pid)  # a pid of elsewhere means nothing here
        return process is not None and process.alive()

    async def _follow_one(self) -> bool:
        """Follow the gateway that is there to its end; False where there is none."""
        try:
            async with GatewayClient(self._files.admin) as client:
                status = await client.status()
                self._last = status
                self._journals.current = status.incarnation
                await self._on_connected(client, status)
                self._client = client
                self._up.set()
                self._health.answered()
                logger.info("gateway %s is there (process %s)", status.incarnation, status.pid)
                await self._progress(client, status)
        except TimeoutError:
            return True  # it drains, and the next one may begin
        except GatewayAway:
            if self._client is None:
                if state_dir.is_held(self._files.lock) and not self._external:
                    await self._health.silent()
                return False
        finally:
            came, self._client = self._client is not None, None
            self._up.clear()
            self._journals.current = None
        if came and not self._ending:
            logger.warning("the gateway is gone")
            self._on_lost("gone", self._last)
        return came

    async def _progress(self, client: GatewayClient, status: Status) -> None:
        """Return when the gateway has ended. Raises TimeoutError where another one follows it."""
        following = None
        watching = self._tasks.start("the gateway's health", self._health.watch(client))
        try:
            async with asyncio.timeout(None) as leaving:
                if succession.is_other(status) and not self._external:
                    following = self._tasks.start("the next gateway", self._make_way(status, leaving))
                async for _ in client.progress():
                    self._journals.poke()
        finally:
            watching.cancel()
            if following is not None:
                following.cancel()

    async def _make_way(self, status: Status, leaving: asyncio.Timeout) -> None:
        """Have another gateway follow this one, of another version, and let go of it."""
        await succession.make_way(self._files, status, may=self._may_follow, tasks=self._tasks)
        leaving.reschedule(asyncio.get_running_loop().time())

    async def _start_one(self, pause_s: float) -> None:
        """Start a gateway where nobody has one, and wait until its socket answers or it has ended."""
        if self._external or self._ending or state_dir.is_held(self._files.lock):
            await asyncio.sleep(LOOK_EVERY_S * (10 if self._external else 1))
            return
        self._starting = True
        try:
            await self._start_and_wait(pause_s)
        finally:
            self._starting = False

    async def _start_and_wait(self, pause_s: float) -> None:
        child = await asyncio.to_thread(self._spawner.gateway)
        deadline_s = asyncio.get_running_loop().time() + UP_TIMEOUT_S
        while child.poll() is None and asyncio.get_running_loop().time() < deadline_s:
            if self._ending:
                child.terminate()  # it has no listener yet, so nobody's call ends with it
            elif await self._answers():
                return
            await asyncio.sleep(LOOK_EVERY_S)
        if self._ending:
            return
        logger.error("the gateway did not come up (exit code %s): see %s", child.returncode, self._files.log)
        self._on_lost("not_up", None)
        await asyncio.sleep(pause_s)

    async def _answers(self) -> bool:
        if not self._files.admin.exists():
            return False
        try:
            async with GatewayClient(self._files.admin) as client:
                await client.status()
        except GatewayAway:
            return False
        return True
