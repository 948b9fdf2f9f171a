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

from kt_gateway.journal.kept import KeptRecords
from kt_gateway.journal.segment import Segment, sync_folder
from kt_gateway.journal.waiters import Waiters
from kt_ledger import durable, journal

logger = logging.getLogger(__name__)

SEGMENT_LIMIT_BYTES = 64 << 20
STUCK_AFTER_S = 5.0
"""A sync that takes longer makes the journal unhealthy (design section 3)."""
RETRY_EVERY_S = 0.5
IDLE_SYNC_S = 0.5
"""How long a record that nobody waits for may stay in the kernel's cache only."""
CLOSE_TIMEOUT_S = 5.0


class JournalWriter:
    """One incarnation's journal. All methods but those of its thread belong to the event loop's thread."""

    def __init__(
        self,
        folder: Path,
        *,
        header: dict[str, Any],
        segment_limit_bytes: int = SEGMENT_LIMIT_BYTES,
        slow_sync_s: float = 0.0,
        stuck_after_s: float = STUCK_AFTER_S,
        on_progress: Callable[[], None] | None = None,
    ) -> None:
        """Make the folder (0700), lock it for life, and begin its first segment.

        Args:
            folder: `gateway/journal/<incarnation>`; must not exist.
            header: the fields of each segment's header but its number.
            segment_limit_bytes: a segment that reached it is followed by the next.
            slow_sync_s: seconds added to each sync (tests of the order of things).
            stuck_after_s: how long a sync may take before answers are released without it.
            on_progress: called in the event loop's thread after each write.

        Raises:
            OSError: the folder or the first segment cannot be made.
        """
        self._folder = folder
        self._header = header
        self._limit_bytes = segment_limit_bytes
        self._slow_sync_s = slow_sync_s
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
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

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
            self._idle = self._loop.call_later(IDLE_SYNC_S, self._ask)
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
        self._thread.join(CLOSE_TIMEOUT_S)
        if not self._thread.is_alive():
            self._segment.close()
        os.close(self._lock_fd)

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        """Let the event loop call `what`; from either thread."""
        try:
            self._loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            pass  # the loop has ended: there is nobody left to tell

    # -- in the event loop -------------------------------------------------------------------------------------
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
        self._tell(self._release_waiters)

    def _release_waiters(self) -> None:
        if not self.healthy:
            self._waiters.give_up()

    def _stuck(self) -> None:
        with self._guard:
            self._fail(TimeoutError("a sync takes too long"))

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

    # -- in the thread ------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while self._await_work():
            if self.healthy:
                self._sync()
            else:
                self._recover()
        if self.healthy:
            self._sync()
        elif self._kept:
            self._recover()

    def _await_work(self) -> bool:
        """Wait for something to do; False once it is time to end."""
        with self._guard:
            if self.healthy:
                self._wake.wait_for(self._has_work)
            else:
                self._wake.wait_for(lambda: self._closing, RETRY_EVERY_S)
            self._asked = False
            return not self._closing

    def _has_work(self) -> bool:
        return self._closing or self._asked or self._wanted > self._reached or not self.healthy

    def _sync(self) -> None:
        with self._guard:
            sequence, segment = self._kept.sequence, self._segment
            given_up, self._given_up = self._given_up, []
            folder_dirty, self._folder_dirty = self._folder_dirty, False
        try:
            if self._slow_sync_s:
                time.sleep(self._slow_sync_s)
            for full in given_up:
                durable.durable(full.descriptor)
            durable.durable(segment.descriptor)
            if folder_dirty:
                sync_folder(self._folder)
        except OSError as error:
            with self._guard:
                self._fail(error)
            return
        finally:
            for full in given_up:
                full.close()
        with self._guard:
            if not self.healthy:
                return  # too late: its waiters have been released
            self._forget(sequence)
        self._tell(self._synced, sequence)

    def _forget(self, sequence: int) -> None:
        self._reached = sequence
        self._kept.forget(sequence)

    def _recover(self) -> None:
        """Begin a fresh segment with everything that is not known to be durable, or leave things as they are."""
        fresh: Segment | None = None
        try:
            fresh = Segment(self._folder, self._segment.number + 1, hidden=True)
            fresh.write(self._header_frame(fresh.number))
            with self._guard:
                for data in self._kept.frames_again():
                    fresh.write(data)
                sequence = self._kept.sequence
            durable.durable(fresh.descriptor)
            fresh.reveal()
            sync_folder(self._folder)
        except OSError:
            if fresh is not None:
                fresh.close()
                fresh.path.unlink(missing_ok=True)
            return
        self._take_over(fresh, sequence)

    def _take_over(self, fresh: Segment, sequence: int) -> None:
        with self._guard:
            old, self._segment = self._segment, fresh
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
                old.close()
        logger.warning("journal is written again, in segment %d", fresh.number)
        self._tell(self._synced, sequence)
        self._tell(self._recovered)
