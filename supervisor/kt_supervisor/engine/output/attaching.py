"""`attach`: what an agent prints, byte for byte as it comes, and whole lines back to it. Leaves nothing when it ends.

There is no terminal on the agent's side: nothing is resized, nothing is echoed, and the two streams come as one.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Self

from kt_ledger.exit_codes import UNSUPPORTED, WRONG_STATE
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.output import beginning, run_logs, sending
from kt_supervisor.engine.output.beginning import Log, Query
from kt_supervisor.engine.output.positions import BEGINNING, Place
from kt_supervisor.engine.output.run_logs import STREAMS, KnownRun
from kt_supervisor.engine.output.segments import Segments
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import Refused
from kt_supervisor.engine.run.current_run import CurrentRun
from kt_supervisor.engine.tasks import Tasks

PIECE_BYTES = 64 << 10
LONGEST_LINE_BYTES = 64 << 10
LOOK_EVERY_S = 0.3
UNSENT_BYTES = 256 << 10


class Lines:
    """What the client types, cut into lines; given to aiohttp as the parser of an upgraded connection."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue()
        self._rest = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take some bytes; a line that gets too long is passed on as it is."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self.waiting.put_nowait(line + b"\n")
        if len(self._rest) > LONGEST_LINE_BYTES:
            self.waiting.put_nowait(self._rest + b"\n")
            self._rest = b""
        return False, b""

    def feed_eof(self) -> None:
        """The client is gone."""
        self.ended.set()

    def set_exception(self, *_: Any) -> None:
        """The connection broke."""
        self.ended.set()


class Raw:
    """The bytes of one stream of one Run from a place on."""

    def __init__(self, segments: Segments, place: Place) -> None:
        self._segments = segments
        self._place = place

    def pieces(self) -> Iterator[bytes]:
        """Yield what came since."""
        while True:
            over = self._segments.exists(self._place.segment + 1)
            data = self._segments.read(self._place, PIECE_BYTES)
            if data:
                self._place = Place(self._place.segment, self._place.offset + len(data))
                yield data
            elif data is None:
                later = [number for number in self._segments.numbers() if number > self._place.segment]
                if not later:
                    return
                self._place = Place(later[0], 0)  # overtaken by a deletion: `logs` tells how much that was
            elif over:
                self._place = Place(self._place.segment + 1, 0)
            else:
                return


class Attachment:
    """One client at one Run."""

    def __init__(self, instance: Instance, current: CurrentRun, tasks: Tasks, *, takes_input: bool) -> None:
        self.takes_input = takes_input
        self._instance = instance
        self._current = current
        self._tasks = tasks
        self._first: list[bytes] = []
        self._streams: list[Raw] = []

    @classmethod
    async def to(cls, parts: Parts, instance: Instance, *, tail: int) -> Self:
        """Return an attachment to the Run under way, which begins with its last lines. Raises Refused (exit 4)."""
        row = await instance.row()
        current = instance.current
        if row.state not in sending.TAKING_INPUT or current is None:
            raise Refused(
                f"cannot attach to {instance.name}: got state {row.state}, wanted running or paused; its output is "
                f"in `kt agent logs {instance.name}`",
                code="not_running",
                exit_code=WRONG_STATE,
            )
        try:
            await sending.recipient(instance, "send to")
            takes_input = True
        except Refused as refused:
            takes_input = refused.exit_code != UNSUPPORTED
        found = cls(instance, current, parts.tasks, takes_input=takes_input)
        await asyncio.to_thread(found._begin, parts, tail)
        return found

    def _begin(self, parts: Parts, tail: int) -> None:
        runs = run_logs.numbered(parts.files, self._instance.id)
        number = next((run.number for run in runs if run.id == self._current.run.id), 1)
        run = KnownRun(number, self._current.files, self._current.scrubbing)
        log = Log(runs=[run], transitions=(), final=False)
        query = Query(tail=tail, streams=frozenset(STREAMS))
        reading, pass_over = beginning.begin(query, log)
        for shown in reading.lines((), final=False):
            if pass_over:
                pass_over -= not shown.line.part and shown.line.gap is None
            elif shown.line.gap is None:
                self._first.append(shown.line.data + (b"" if shown.line.part else b"\n"))
        at = reading.position
        places = {"out": at.out, "err": at.err} if at.run else {"out": BEGINNING, "err": BEGINNING}
        self._streams = [Raw(run.segments(stream), places[stream]) for stream in STREAMS]

    async def run(self, transport: asyncio.WriteTransport, lines: Lines) -> None:
        """Serve until the Run has ended, or the client has gone."""
        start, name = self._tasks.start, self._instance.name
        writing = start(f"attach {name}", self._show(transport))
        typing = start(f"input of {name}", self._type(transport, lines))
        gone = start(f"client of {name}", lines.ended.wait())
        try:
            await asyncio.wait((writing, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (writing, typing, gone):
                task.cancel()
            await asyncio.gather(writing, typing, gone, return_exceptions=True)

    async def _show(self, transport: asyncio.WriteTransport) -> None:
        for line in self._first:
            await _write(transport, line)
        while not transport.is_closing():
            self._instance.news.clear()
            over = self._instance.current is not self._current
            while pieces := await asyncio.to_thread(self._some):
                for piece in pieces:
                    await _write(transport, piece)
            if over:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._instance.news.wait(), LOOK_EVERY_S)

    def _some(self) -> list[bytes]:
        return [piece for stream in self._streams for piece in [next(stream.pieces(), b"")] if piece]

    async def _type(self, transport: asyncio.WriteTransport, lines: Lines) -> None:
        while True:
            line = await lines.waiting.get()
            try:
                await sending.send(self._instance, line)
            except Exception as error:
                # Whatever it was, whoever typed the line must learn that it did not arrive.
                await _write(transport, f"kt: not sent: {error}\n".encode("utf-8", "replace"))


async def _write(transport: asyncio.WriteTransport, data: bytes) -> None:
    """Write without piling up: a client that does not read is waited for, and holds up nobody else."""
    while transport.get_write_buffer_size() > UNSENT_BYTES and not transport.is_closing():  # noqa: ASYNC110
        await asyncio.sleep(0.02)  # a transport tells only its own protocol that it drained
    if not transport.is_closing():
        transport.write(data)
