"""An agent's standard input: one writer of the engine's own per Run, and whole messages one after another.

The keeper holds an end as well, so neither's death is an end of input for the agent; both let go for `eof`.
"""

import asyncio
import contextlib
import os
import stat
from pathlib import Path

from kt_ledger.exit_codes import TIMED_OUT, WRONG_STATE
from kt_supervisor.engine.problems import Refused

WRITE_BYTES = 64 << 10


class NotTaken(Exception):
    """The agent did not take its input in time."""

    exit_code = TIMED_OUT
    code = "input_not_taken"

    def __init__(self, *, taken: int, wanted: int, within_s: float, cut: bool) -> None:
        self.taken = taken
        said = "; the agent has the beginning of a line, which the next message ends" if cut else ""
        super().__init__(
            f"the agent did not read its input: got {taken} of {wanted} bytes into it within {within_s:g} s, wanted all"
            f"{said}; it may be busy or paused: send again later"
        )


class AgentInput:
    """The FIFO of one Run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._turn = asyncio.Lock()
        self._cut = False

    def open(self) -> None:
        """Hold a writer, where the Run has an input that was not closed."""
        if self._descriptor is not None:
            return
        with contextlib.suppress(
            OSError
        ):  # no FIFO: none was wanted, or it was closed; no reader: it has ended
            descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                self._descriptor = descriptor
            else:
                os.close(descriptor)

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    async def write(self, data: bytes, *, within_s: float) -> None:
        """Have the agent's pipe take all of `data`; messages of several callers never mix.

        Raises:
            NotTaken: it did not within the time, the wait for others included; a beginning may have been taken.
            Refused: there is no input any more.
        """
        ends_s = asyncio.get_running_loop().time() + within_s
        taken = 0
        try:
            async with asyncio.timeout(within_s):
                await self._turn.acquire()
            try:
                if self._cut:
                    await self._write(b"\n", ends_s)  # what was cut short must not become part of this one
                    self._cut = False
                view = memoryview(data)
                while view:
                    count = await self._write(view[:WRITE_BYTES], ends_s)
                    taken += count
                    view = view[count:]
            finally:
                self._cut = self._cut or 0 < taken < len(data)
                self._turn.release()
        except TimeoutError:
            raise NotTaken(taken=taken, wanted=len(data), within_s=within_s, cut=taken > 0) from None

    async def _write(self, data: bytes | memoryview, ends_s: float) -> int:
        """Write a beginning of `data`. Raises TimeoutError, Refused."""
        while True:
            if self._descriptor is None:
                raise closed()
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:
                await self._wait(self._descriptor, ends_s)
            except OSError as error:
                raise closed() from error

    @staticmethod
    async def _wait(descriptor: int, ends_s: float) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_writer(descriptor, ready.set)
        try:
            async with asyncio.timeout_at(ends_s):
                await ready.wait()
        finally:
            loop.remove_writer(descriptor)


def closed() -> Refused:
    """Return the refusal where an agent takes no input any more."""
    return Refused(
        "cannot send: got an agent whose input was closed, wanted an open one; it opens with the next start",
        code="input_closed",
        exit_code=WRONG_STATE,
    )
