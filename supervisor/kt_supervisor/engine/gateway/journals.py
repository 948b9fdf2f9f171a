"""The journals of all gateways that ever served this state directory: found, folded, and read to the end once dead."""

import asyncio

from kt_ledger import fold_journal
from kt_ledger.clock import Clock
from kt_ledger.fold_journal import JournalReader
from kt_ledger.layout import GatewayLayout, journal_segment
from kt_ledger.store import Store
from kt_supervisor.engine import state_dir
from kt_supervisor.engine.output.tails import Tail
from kt_supervisor.engine.tasks import Tasks
from kt_supervisor.engine.writer import Writer


class Journals:
    """Tails by incarnation; `current` is the one of the gateway that is connected, never taken for dead."""

    def __init__(self, files: GatewayLayout, *, writer: Writer, clock: Clock, tasks: Tasks) -> None:
        self._files = files
        self._writer = writer
        self._clock = clock
        self._tasks = tasks
        self._tails: dict[str, Tail] = {}
        self._finished: set[str] = set()
        self.current: str | None = None

    def poke(self) -> None:
        """Fold the current journal soon."""
        if self.current is not None:
            self._tail(self.current).poke()

    async def fold(self) -> None:
        """Have all that the journals held when this was called in the ledger; raises as `Tail.fold`."""
        await asyncio.gather(*(self._fold(name) for name in self._unfinished()))

    async def _fold(self, incarnation: str) -> None:
        # Asked before reading: once nobody holds the lock, the end that is then found is the last one.
        held = state_dir.is_held(self._files.journal(incarnation) / "lock")
        closed = held is False and incarnation != self.current
        await self._tail(incarnation).fold(closed=closed)
        if closed and incarnation != self.current:
            self._finished.add(incarnation)
            self._tails.pop(incarnation, None)

    def _unfinished(self) -> list[str]:
        try:
            found = sorted(path.name for path in self._files.journals.iterdir() if path.is_dir())
        except FileNotFoundError:
            return []
        return [name for name in found if name not in self._finished]

    def _tail(self, incarnation: str) -> Tail:
        self._finished.discard(incarnation)
        if incarnation not in self._tails:
            folder = self._files.journal(incarnation)

            def make_reader(store: Store) -> JournalReader:
                log = fold_journal.log_name(incarnation)
                return JournalReader(
                    incarnation, position=store.position(log), open_exchanges=store.open_exchanges(log)
                )

            self._tails[incarnation] = Tail(
                f"journal {incarnation}",
                path_of=lambda number: journal_segment(folder, number),
                make_reader=make_reader,
                writer=self._writer,
                clock=self._clock,
                tasks=self._tasks,
            )
        return self._tails[incarnation]
