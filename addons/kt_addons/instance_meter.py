"""The meter of one agent instance's listener: its rules, its record, and its share of our hooks.

One object per listener, added and removed with it. Requests that leave no row of their own are counted and written
as a note when the count has rested for a while, so that a hammering client costs the journal nothing.
"""

import asyncio
import dataclasses
import socket
from collections.abc import Callable
from typing import Any

from kt_gateway.exchange.exchange import Exchange, RequestHead
from kt_gateway.exchange.unasked import Unasked
from kt_gateway.http1 import door
from kt_gateway.journal.writer import JournalWriter
from kt_gateway.mitm import mode
from kt_gateway.mitm.guard import GuardedExchange
from kt_gateway.mitm.hooks import End, Moment, Wait
from kt_gateway.mitm.waiting_room import WaitingRoom
from kt_ledger import clock, journal, messages
from kt_ledger.values import Completeness, Reason

HOLD_S = 10.0
"""How long a call waits for the journal before it is refused."""
HEAD_TIMEOUT_S = 60.0
"""How long a request's head may take from its first byte; nginx and Apache have 60 and 20 to 40 seconds."""
COUNT_EVERY_S = 2.0
LOCAL_ROWS_PER_WINDOW = 200
"""Rows of refused strangers within one window of counting; more are counted only."""

_DETAILS = {
    "probe": "requests outside of the provider's base were answered here",
    "upgrade_refused": "requests for another protocol (WebSocket) were answered 426",
    "refused_unlisted": "more refused requests than are listed one by one",
}


class InstanceMeter:
    """What the lanes of one listener ask."""

    def __init__(
        self,
        listener: messages.Listener,
        *,
        endpoint: socket.socket,
        writer: JournalWriter,
        time_source: clock.Clock,
        new_id: Callable[[], str],
        head_timeout_s: float = HEAD_TIMEOUT_S,
    ) -> None:
        """Take the rules and the bound socket (ours from now on).

        Raises:
            RulesInvalid: the message's upstream is no absolute http(s) URL.
        """
        self.instance_id = listener.instance_id
        self.door = door.Door(listener)
        self.endpoint = endpoint
        self.in_flight = 0
        self.draining = False
        self.head_timeout_s = head_timeout_s
        self._room = WaitingRoom()
        self._unasked = Unasked()
        self._writer = writer
        self._clock = time_source
        self._new_id = new_id
        self._counts: dict[tuple[str, str | None], int] = {}
        self._local_rows = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def spec(self) -> str:
        """The proxy mode of this listener."""
        return mode.spec(self.instance_id, self.door.listener.port)

    @property
    def held(self) -> int:
        """How many calls wait for the instance to be resumed."""
        return len(self._room)

    def replace(self, listener: messages.Listener) -> None:
        """Take new rules; what is held and the next request pass through them.

        Raises:
            RulesInvalid: nothing was changed.
        """
        self.door = door.Door(listener)
        self._room.let_go(End.LOOK)

    def retire(self) -> None:
        """Let nobody in any more: connections that are still open may finish what is under way, and that is all."""
        self.draining = True
        self.door = door.Door(dataclasses.replace(self.door.listener, grants=(), listener_auth="token"))
        self._room.let_go(End.LOOK)

    def drain(self) -> None:
        """Finish what is under way: what is held has not left, and is the next gateway's to hold."""
        self.draining = True
        self._room.let_go(End.LEAVING)

    # -- hooks -------------------------------------------------------------------------------------------------
    async def kt_settle(self, moment: Moment) -> None:
        """Let a lane go on once its close record is durable, or cannot become so."""
        moment.synced = await self._writer.durable()

    async def kt_admit(self, moment: Moment) -> None:
        """Let a lane go on once records can be written, or after ten seconds."""
        moment.usable = await self._writer.usable(HOLD_S)

    async def kt_hold(self, wait: Wait) -> None:
        """Let a lane go on once the rules have changed, or its call cannot wait any longer."""
        hold_s = self.door.hold_s
        if hold_s is None:
            return
        if self.draining:
            wait.end = End.LEAVING
            return
        left_s = hold_s - (self._clock.monotonic_ns() - wait.since_ns) / 1e9
        wait.end = await self._room.wait(left_s, wait.is_gone)

    # -- what lanes ask ----------------------------------------------------------------------------------------
    def begin(self, run_id: str | None, asked: RequestHead) -> GuardedExchange:
        """Return the exchange of a request that arrived now."""
        at_ns, mono_ns = self.now()
        upstream = self.door.upstream.authority
        exchange = Exchange(
            id=self._new_id(),
            instance_id=self.instance_id,
            run_id=run_id,
            head=asked,
            started_at_ns=at_ns,
            started_mono_ns=mono_ns,
            inject_usage=lambda model: not self._unasked.knows(upstream, model, mono_ns=mono_ns),
        )
        return GuardedExchange(exchange, started_at_ns=at_ns)

    def note_unasked(self, model: str | None) -> None:
        """Remember for a day that this model's provider refuses to be asked for usage."""
        self._unasked.note(self.door.upstream.authority, model, mono_ns=self.now()[1])

    def record(self, type_: int, fields: dict[str, Any], *, keep: bool = True) -> bool:
        """Write to the journal; False where that is not possible now."""
        return self._writer.append(type_, fields, keep=keep)

    def record_local(self, run_id: str | None, asked: RequestHead, status: int, reason: Reason) -> None:
        """Record a request that was answered here and went nowhere."""
        self._local_rows += 1
        self._arm()
        if self._local_rows > LOCAL_ROWS_PER_WINDOW:
            self.count("refused_unlisted", run_id)
            return
        at_ns = self._clock.wall_ns()
        who = {
            "x": self._new_id(),
            "instance": self.instance_id,
            "run": run_id,
            "at_ns": at_ns,
            "opened_at_ns": at_ns,
        }
        what = {"method": asked.method, "path": asked.path, "family": "unknown", "status": status}
        why = {"reason": reason, "completeness": Completeness.UNKNOWN, "counts": {}, "sent": "no"}
        self._writer.append(journal.LOCAL, {**who, **what, **why, "request_bytes": 0, "response_bytes": 0})

    def count(self, kind: str, run_id: str | None) -> None:
        """Count a request that leaves no row of its own."""
        key = (kind, run_id)
        self._counts[key] = self._counts.get(key, 0) + 1
        self._arm()

    def now(self) -> tuple[int, int]:
        """Return (wall clock, monotonic clock) in nanoseconds."""
        return self._clock.wall_ns(), self._clock.monotonic_ns()

    # -- counting ----------------------------------------------------------------------------------------------
    def write_counts(self) -> None:
        """Write what was counted since the last time, one note a kind."""
        self._timer = None
        self._local_rows = 0
        counts, self._counts = self._counts, {}
        for (kind, run_id), count in counts.items():
            note = {"kind": kind, "instance": self.instance_id, "run": run_id, "at_ns": self._clock.wall_ns()}
            self._writer.append(journal.NOTE, {**note, "detail": _DETAILS[kind], "count": count})

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(COUNT_EVERY_S, self.write_counts)

    def done(self) -> None:
        """Write what was counted, and close the socket."""
        if self._timer is not None:
            self._timer.cancel()
            self.write_counts()
        self.endpoint.close()
