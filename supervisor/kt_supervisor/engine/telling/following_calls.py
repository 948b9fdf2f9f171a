"""`calls -f`: the calls that are there, then each one as it begins and again as it ends.

A follower that lost its engine goes on behind any number that it has seen: calls are numbered for good.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

from kt_ledger.records import CallRow
from kt_ledger.store import Store
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.telling import exchange_view
from kt_supervisor.engine.writer import Writer

PAGE = 200
"""Calls a job of the writer: some milliseconds."""

LOOK_EVERY_S = 0.3
ALIVE_EVERY_S = 15.0
"""An empty line now and then finds out whether anybody still listens."""


async def latest_calls(writer: Writer, instance_id: str, *, limit: int) -> list[CallRow]:
    """Return an instance's latest calls, oldest first, read page by page: other work comes in between."""
    pages: list[list[CallRow]] = []
    left, before = limit, None
    while left > 0:
        page = await writer.do(_page(instance_id, min(PAGE, left), before))
        if not page:
            break
        pages.append(page)
        left, before = left - len(page), page[0].seq
    return [row for page in reversed(pages) for row in page]


def _page(instance_id: str, limit: int, before: int | None) -> Callable[[Store], list[CallRow]]:
    return lambda store: store.numbered_calls(instance_id, limit=limit, before=before)[0]


class FollowingCalls:
    """One reader of one instance's calls; ends when the instance is removed."""

    def __init__(self, writer: Writer, instance: Instance, *, limit: int, after: int | None) -> None:
        self._writer = writer
        self._instance = instance
        self._limit = limit
        self._after = after
        self._open: set[int] = set()

    async def batches(self) -> AsyncIterator[bytes]:
        """Yield NDJSON, some lines at a time."""
        clock = asyncio.get_running_loop()
        told_s = clock.time()
        while True:
            removed = self._instance.removed
            new, known = await self._look()
            rows = [row for row in known if self._has_ended(row)]
            rows += [row for row in new if self._has_ended(row) or self._begins(row)]
            if rows or clock.time() - told_s > ALIVE_EVERY_S:
                told_s = clock.time()
                yield b"".join(_line(row) for row in rows) or b"\n"
            if len(new) >= PAGE:
                continue  # there may be more at once
            if removed:
                return
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self) -> tuple[list[CallRow], list[CallRow]]:
        """Return the calls that have begun since, and those that were under way, as they are now."""
        instance_id, after = self._instance.id, self._after
        limit = min(self._limit, PAGE) if after is None else PAGE
        also = sorted(self._open)[:PAGE]  # the oldest: what is under way longest is most likely to have ended
        new, known = await self._writer.do(
            lambda store: store.numbered_calls(instance_id, limit=limit, after=after, also=also)
        )
        self._after = max((row.seq for row in new), default=after or 0)
        return new, known

    def _has_ended(self, row: CallRow) -> bool:
        if row.exchange.state == "in_flight":
            return False
        self._open.discard(row.seq)
        return True

    def _begins(self, row: CallRow) -> bool:
        self._open.add(row.seq)
        return True


def _line(row: CallRow) -> bytes:
    return json.dumps(exchange_view.line(row), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
