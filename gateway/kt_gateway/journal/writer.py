"""The gateway's own log on disk: appended by the event loop, made durable by one thread, many waiters a sync.

Laws: a record is with the kernel before `append` returns, so a killed process loses none; one sync serves everyone
who waited when it began; a descriptor whose write or sync failed is given up and never synced again, its records
that were not durable are written once more to a fresh segment (a reader sees them twice: same exchange id, same
facts), close records among them marked `unsynced`, since their answers were released meanwhile.
"""

import asyncio
import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kt_gateway.journal import fresh_segment, limits
from kt_gateway.journal.kept import KeptRecords
from kt_gateway.journal.segment import Segment, close_idle, sync_files
from kt_gateway.journal.turns import Turns
from kt_gateway.journal.waiters import Waiters
from kt_ledger import durable, journal

logger = logging.getLogger(__name__)


class JournalWriter:
    """One incarnation's journal. All methods but those of its thread belong to the event loop's thread."""

    def __init__(
        self,
        folder: Path,
        *,
        header: dict[str, Any],
        segment_limit_bytes: int = limits.SEGMENT_LIMIT_BYTES,
        slow_sync_s: float = 0.0,
        stuck_after_s: float = limits.STUCK_AFTER_S,
        sync: Callable[[int], None] = durable.durable,
        on_progress: Callable[[], None] | None = None,
    ) -> None:
        """Make the folder (0700), lock it for life, and begin its first segment.

        Args:
            folder: `gateway/journal/<incarnation>`; must not exist.
            header: the fields of each segment's header but its number.
            segment_limit_bytes: a segment that reached it is followed by the next.
            slow_sync_s: added to each sync (tests of the order of things).
            stuck_after_s: how long a sync may take before answers are released without it.
            sync: makes a descriptor's file durable.
            on_progress: called in the event loop's thread after each write.

        Raises:
            OSError: the folder or the first segment cannot be made.
        """
        self._folder = folder
        self._header = header
        self._limit_bytes = segment_limit_bytes
        self._slow_sync_s = slow_sync_s
        self._stuck_after_s = stuck_after_s
        self._sync = sync
        self.on_progress = on_progress
        folder.mkdir(mode=0o700, parents=True)
        self._lock_fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.healthy = True
        self._segment = Segment(folder, 1)
        self._segment.write(self._header_frame(1))
        self._given_up: list[Segment] = []  # full or failed; closed by the thread, full ones synced first
        self._folder_dirty = True
        self._durable = 0  # as the loop knows it
        self._wanted = 0  # the highest sequence that somebody waits for
        self._reached = 0  # the highest sequence that the thread made durable
        self._kept = KeptRecords()
        self._waiters = Waiters(stuck_after_s=stuck_after_s, on_stuck=self._stuck)
        self._idle: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()  # of everything that both threads touch
        self._wake = threading.Condition(self._guard)
        self._asked = False
        self._closing = False
        self._syncing: Segment | None = None  # what the thread whose turn it is has in hand
        with self._guard:
            self._turns = Turns(self._run)

    @property
    def position(self) -> tuple[int, int]:
        """Return (segment number, bytes of whole records in it)."""
        return self._segment.number, self._segment.size

    def append(self, type_: int, fields: dict[str, Any], *, keep: bool = True) -> bool:
        """Hand one record to the kernel.

        Args:
            type_: a record type of `kt_ledger.journal`.
            fields: its payload; not to be changed afterwards.
            keep: whether to write it later when it cannot be written now.

        Returns:
            False when it could not be written now; it is then kept in memory, or forgotten where `keep` is false.
        """
        data = journal.frame(type_, fields)
        with self._guard:
            written = self.healthy and self._write(data)
            if written or keep:
                self._kept.add(type_, fields, len(data), written=written)
        if self._idle is None:
            self._idle = self._loop.call_later(limits.IDLE_SYNC_S, self._ask)
        if written and self.on_progress is not None:
            self.on_progress()
        return written

    async def durable(self) -> bool:
        """Wait until everything appended so far is durable; False when that cannot be had."""
        if not self.healthy:
            return False
        if self._durable >= self._kept.sequence:
            return True
        waiter = self._waiters.for_sync(self._kept.sequence)
        with self._guard:
            self._wanted = self._kept.sequence
            self._wake.notify()
        return await waiter

    async def usable(self, timeout_s: float) -> bool:
        """Wait until records can be written again, at most `timeout_s`."""
        if self.healthy:
            return True
        done, _ = await asyncio.wait([self._waiters.for_health()], timeout=timeout_s)
        return bool(done) and self.healthy

    def close(self) -> None:
        """Make everything durable, end the thread and let go of the lock; blocks at most five seconds."""
        with self._guard:
            self._closing = True
            self._wake.notify()
        if self._turns.join(limits.CLOSE_TIMEOUT_S) and not self._segment.in_sync:
            self._segment.close()
        os.close(self._lock_fd)

    def _write(self, data: bytes) -> bool:
        try:
            if self._segment.size + len(data) > self._limit_bytes:
                self._next_segment()
            self._segment.write(data)
        except OSError as error:
            self._fail(error)
            return False
        return True

    def _next_segment(self) -> None:
        number = self._segment.number + 1
        fresh = Segment(self._folder, number)
        fresh.write(self._header_frame(number))
        self._given_up.append(self._segment)
        self._segment = fresh
        self._folder_dirty = True

    def _header_frame(self, number: int) -> bytes:
        return journal.frame(journal.HEADER, {**self._header, "segment": number})

    def _fail(self, error: OSError) -> None:
        """Take the news, in either thread and under the lock, that the current segment is beyond use."""
        if not self.healthy:
            return
        self.healthy = False
        self._wake.notify()
        logger.error("journal cannot be written: %s; answers are released unsynced, new calls wait", error)
        self._waiters.tell(self._release_waiters)

    def _release_waiters(self) -> None:
        if not self.healthy:
            self._waiters.give_up()
            self._loop.call_later(self._stuck_after_s, self._look_at_recovery)

    def _stuck(self) -> None:
        with self._guard:
            self._fail(TimeoutError("a sync takes too long"))
            if self._turns.pass_on() and self._syncing is not None:
                self._syncing.in_sync = True

    def _look_at_recovery(self) -> None:
        """See whether a recovery hangs as well."""
        with self._guard:
            if self.healthy or self._closing:
                return
            if self._turns.hangs(self._stuck_after_s):
                self._turns.pass_on()
        self._loop.call_later(self._stuck_after_s, self._look_at_recovery)

    def _ask(self) -> None:
        self._idle = None
        with self._guard:
            self._asked = True
            self._wake.notify()

    def _synced(self, sequence: int) -> None:
        self._durable = max(self._durable, sequence)
        self._waiters.synced(sequence)

    def _recovered(self) -> None:
        self._waiters.recovered()
        if self.on_progress is not None:
            self.on_progress()

    def _run(self, turn: int) -> None:
        while self._await_work(turn):
            (self._sync_all if self.healthy else self._recover)(turn)
        with self._guard:
            superseded = self._turns.is_over(turn)
        if not superseded and (self.healthy or self._kept):
            (self._sync_all if self.healthy else self._recover)(turn)

    def _await_work(self, turn: int) -> bool:
        """Wait for something to do; False once it is time to end."""
        with self._guard:
            if turn != self._turns.current:
                return False
            if self.healthy:
                self._wake.wait_for(self._has_work)
            else:
                self._wake.wait_for(lambda: self._closing, limits.RETRY_EVERY_S)
            self._asked = False
            return not self._closing

    def _has_work(self) -> bool:
        return self._closing or self._asked or self._wanted > self._reached or not self.healthy

    def _sync_all(self, turn: int) -> None:
        with self._guard:
            sequence, segment = self._kept.sequence, self._segment
            self._syncing = segment
            given_up, self._given_up = self._given_up, []
            folder_dirty, self._folder_dirty = self._folder_dirty, False
        if self._slow_sync_s:
            time.sleep(self._slow_sync_s)
        error = sync_files([*given_up, segment], self._folder if folder_dirty else None, sync=self._sync)
        for full in given_up:
            full.close()
        with self._guard:
            if turn != self._turns.current:
                # Too late: its waiters were released, and another thread has gone on, or will, with a fresh segment.
                segment.in_sync = False
                if segment is not self._segment and segment not in self._given_up:
                    segment.close()
                return
            self._syncing = None
            if error is not None:
                self._fail(error)
            if not self.healthy:
                return
            self._forget(sequence)
        self._waiters.tell(self._synced, sequence)

    def _forget(self, sequence: int) -> None:
        self._reached = sequence
        self._kept.forget(sequence)

    def _recover(self, turn: int) -> None:
        """Begin a fresh segment with everything that is not known to be durable, or leave things as they are."""
        with self._guard:
            self._turns.busy(turn, begins=True)
            sequence, frames, old = self._kept.sequence, list(self._kept.frames_again()), self._segment
        fresh = fresh_segment.begin(
            self._folder,
            old.number,
            turn,
            lambda number: [self._header_frame(number), *frames],
            sync=self._sync,
            is_wanted=lambda: turn == self._turns.current,
        )
        with self._guard:
            self._turns.busy(turn, begins=False)
        if fresh is not None:  # else the disk is still as it was: again in a while
            self._take_over(fresh, sequence, turn)

    def _take_over(self, fresh: Segment, sequence: int, turn: int) -> None:
        with self._guard:
            if turn != self._turns.current:
                fresh.close()  # revealed a moment too late: its records will be seen twice, which is allowed
                return
            # What is not durable of the others is in the fresh one: they need no sync, which may hang as well.
            others, self._given_up = [*self._given_up, self._segment], []
            self._segment = fresh
            self._forget(sequence)
            self.healthy = True
            dropped = self._kept.take_dropped()
            late = [*self._kept.frames_again(), *([] if dropped is None else [dropped])]
            try:
                for data in late:
                    fresh.write(data)
            except OSError as error:
                self._fail(error)
                return
            finally:
                close_idle(others)
        logger.warning("journal is written again, in segment %d", fresh.number)
        self._waiters.tell(self._synced, sequence)
        self._waiters.tell(self._recovered)
