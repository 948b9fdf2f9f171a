"""When an agent counts as started: alive for the contract's window, and whatever more its adapter declares."""

import asyncio
from typing import Any

from kt_supervisor.engine.run.keeper_link import KeeperLink

WINDOW_S = 0.3
"""How long an agent must have been alive to count as started: the contract's window."""

ALIVE = f"one that is alive for {WINDOW_S:g} s"
INTERRUPTED = "was stopped while it was starting"


class NotReady(Exception):
    """The agent did not become ready; `got` continues the words "got one that"."""

    def __init__(self, got: str, *, wanted: str, ended: bool = False) -> None:
        self.got = got
        self.wanted = wanted
        self.ended = ended
        super().__init__(f"it {got}, wanted {wanted}")


class Interrupted(NotReady):
    """Somebody stops the agent: it is theirs to end."""

    def __init__(self) -> None:
        super().__init__(INTERRUPTED, wanted="one that nobody stops")


class Interruption:
    """How a stop reaches a start that waits: `set` by the one, awaited by the other."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None

    def begin(self) -> asyncio.Future[None]:
        """Return what is done once somebody interrupts from now on."""
        self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    def set(self) -> None:
        """Interrupt a start that waits; nothing where none does."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


async def wait(link: KeeperLink, interruption: asyncio.Future[None]) -> None:
    """Return once the agent has been alive for the contract's window.

    Args:
        link: its keeper.
        interruption: done when somebody stops the agent.

    Raises:
        Interrupted, NotReady.
    """
    await _first({link.agent_exited, interruption}, timeout_s=WINDOW_S)
    if interruption.done():
        raise Interrupted
    if link.agent_exited.done():
        raise NotReady("ended at once", wanted=ALIVE, ended=True)


async def check(
    link: KeeperLink,
    interruption: asyncio.Future[None],
    checking: asyncio.Task[bool],
    *,
    wanted: str,
    deadline_s: float,
) -> None:
    """Return once `checking` has returned; it is cancelled otherwise.

    Args:
        link: its keeper.
        interruption: done when somebody stops the agent.
        checking: what the adapter declares, being looked at.
        wanted: what that is, in words.
        deadline_s: how long it may take.

    Raises:
        Interrupted, NotReady.
    """
    try:
        await _first({link.agent_exited, interruption, checking}, timeout_s=deadline_s)
        if interruption.done():
            raise Interrupted
        if link.agent_exited.done():
            raise NotReady("ended before it was ready", wanted=wanted, ended=True)
        if not checking.done():
            raise NotReady(f"was not ready within {deadline_s:g} s", wanted=wanted)
        if not checking.result():
            raise NotReady("could not be looked at", wanted=wanted)
    finally:
        checking.cancel()


async def _first(futures: set[asyncio.Future[Any]], *, timeout_s: float) -> None:
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
