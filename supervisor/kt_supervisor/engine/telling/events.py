"""What happened, for whoever follows it: read from the table, from any number on, at the reader's own speed.

Law: the table is the only queue. A slow follower keeps nothing in memory and holds up nobody; one that was away goes on
behind the number that it saw last.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from kt_ledger.exit_codes import USAGE
from kt_ledger.records import EventRow
from kt_ledger.store import Store
from kt_supervisor.engine.problems import Refused
from kt_supervisor.engine.writer import Writer

PAGE = 200
"""Events a job of the writer: about two milliseconds."""

ALIVE_EVERY_S = 15.0
"""An empty line now and then finds out whether anybody still listens."""

BREATH_S = 0.05
"""A follower of a busy engine gets what came meanwhile, rather than a job of the writer for each commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a reader asks for: `after` None for the latest `limit`, else everything above a number."""

    after: int | None
    limit: int
    follow: bool
    instance_id: str | None = None


async def batches(
    writer: Writer, wanted: Wanted, *, encode: Callable[[EventRow], bytes], alive: bytes
) -> AsyncIterator[bytes]:
    """Yield events, some at a time; without `follow`, end with the latest (or with the `limit`th after a number)."""
    left = wanted.limit
    if wanted.after is not None:
        after = wanted.after
    else:
        rows, after = await writer.do(lambda store: _latest(store, wanted))
        if rows:
            yield b"".join(encode(row) for row in rows)
        if not wanted.follow:
            return
    while wanted.follow or left > 0:
        strokes = writer.events.strokes
        size = PAGE if wanted.follow else min(PAGE, left)
        rows = await _page(writer, after, size, wanted.instance_id)
        if rows:
            after, left = rows[-1].seq, left - len(rows)
            yield b"".join(encode(row) for row in rows)
        if len(rows) == size:
            continue
        if not wanted.follow:
            return
        if not await writer.events.wait(strokes, within_s=ALIVE_EVERY_S):
            yield alive
        await asyncio.sleep(BREATH_S)


async def check(writer: Writer, after: int | None) -> None:
    """Refuse a number that was never given: it is of another ledger, or of this one before a backup was restored."""
    if not after:
        return
    last = await writer.do(lambda store: store.last_event())
    if after > last:
        raise Refused(
            f"got after={after}, wanted at most {last}, the number of the latest event: this is another ledger, or an "
            "older state of it; begin again without a number",
            code="number_unknown",
            exit_code=USAGE,
        )


def document(row: EventRow) -> dict[str, Any]:
    """Return an event as it is told: the contract's payload, tagged by kind, with its number."""
    return {"seq": row.seq, "kind": row.kind, "instance_id": row.instance_id, **row.document}


def as_line(row: EventRow) -> bytes:
    """Return an event as a line of NDJSON."""
    return _text(row) + b"\n"


def as_server_sent(row: EventRow) -> bytes:
    """Return an event in the format of `text/event-stream` (HTML standard, section 9.2.5)."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (row.seq, row.kind.encode(), _text(row))


def _text(row: EventRow) -> bytes:
    return json.dumps(document(row), ensure_ascii=True, separators=(",", ":")).encode()


def _latest(store: Store, wanted: Wanted) -> tuple[list[EventRow], int]:
    """Return the latest events, and the number behind which a follower goes on, at one moment."""
    last = store.last_event()
    return store.latest_events(limit=wanted.limit, instance_id=wanted.instance_id), last


async def _page(writer: Writer, after: int, limit: int, instance_id: str | None) -> list[EventRow]:
    return await writer.do(lambda store: store.events(after, limit, instance_id))
