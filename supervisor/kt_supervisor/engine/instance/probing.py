"""Looking whether an agent is what its adapter calls ready: at what it prints, at a port, at a URL, or by a command.

The probes themselves are the manifest room's; here is the waiting.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from kt_ledger.layout import RunLayout
from kt_manifest.launch.readiness import LineMatcher, Probe, StatusLine
from kt_manifest.line_pattern import LinePattern
from kt_supervisor.engine.run.keeper_link import KeeperGone, KeeperLink

AGAIN_S = 0.05
COMMAND_AGAIN_S = 0.5
ANSWER_TIMEOUT_S = 5.0
PIECE_BYTES = 65536
STREAMS = {"stdout": ("out",), "stderr": ("err",), "any": ("out", "err")}


class Look(Protocol):
    """One look; True once the agent is ready."""

    def __call__(self) -> Awaitable[bool]:
        """Look."""
        ...


def describe(probe: Probe) -> str:
    """Return what is waited for, in words that continue "wanted"."""
    where = "" if probe.stream == "any" else f" on {probe.stream}"
    what = {
        "line": f"a line{where} that matches {probe.line!r}",
        "port": f"a port {probe.port} that takes connections",
        "http": f"a good answer from port {probe.port}",
        "command": f"{Path(probe.argv[0]).name if probe.argv else 'a command'} that ends with 0",
    }
    return f"{what[probe.way]} within {probe.deadline_s:g} s"


async def wait(probe: Probe, files: RunLayout, link: KeeperLink) -> bool:
    """Return True once the agent is ready; whoever waits bounds it."""
    looks: dict[str, Callable[[], Look]] = {
        "line": lambda: _Lines(probe, files),
        "port": lambda: lambda: _accepts(probe),
        "http": lambda: lambda: _answers(probe),
        "command": lambda: lambda: _succeeds(probe, link),
    }
    look = looks[probe.way]()
    pause_s = COMMAND_AGAIN_S if probe.way == "command" else AGAIN_S
    while not await look():  # noqa: ASYNC110 (nobody tells when a port opens)
        await asyncio.sleep(pause_s)
    return True


class _Lines:
    """What was printed from the beginning of the Run on, whichever segment it is in."""

    def __init__(self, probe: Probe, files: RunLayout) -> None:
        pattern = LinePattern(probe.line)
        self._files = files
        self._at = dict.fromkeys(STREAMS[probe.stream], (1, 0))
        self._matchers = {stream: LineMatcher(pattern) for stream in self._at}

    async def __call__(self) -> bool:
        return await asyncio.to_thread(lambda: max(map(self._read, self._at)))

    def _read(self, stream: str) -> bool:
        number, offset = self._at[stream]
        while not self._matchers[stream].found:
            follows = self._files.segment(stream, number + 1).exists()
            try:
                with self._files.segment(stream, number).open("rb") as segment:
                    segment.seek(offset)
                    data = segment.read(PIECE_BYTES)
            except FileNotFoundError:
                kept = [
                    int(path.stem.rpartition("-")[2]) for path in self._files.root.glob(f"{stream}-*.log")
                ]
                if not kept or min(kept) <= number:
                    break
                number, offset = min(kept), 0  # what was before it was deleted to keep the disk cap
                continue
            if data:
                offset += len(data)
                self._matchers[stream].feed(data)
            elif follows:
                number, offset = number + 1, 0
            else:
                break
        self._at[stream] = number, offset
        return self._matchers[stream].found


async def _accepts(probe: Probe) -> bool:
    for host in probe.hosts:
        with contextlib.suppress(OSError, TimeoutError):
            _, writer = await asyncio.wait_for(
                asyncio.open_connection(host, probe.port), timeout=ANSWER_TIMEOUT_S
            )
            writer.close()
            return True
    return False


async def _answers(probe: Probe) -> bool:
    status = StatusLine()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(probe.hosts[0], probe.port)
            try:
                writer.write(probe.request())
                while status.feed(await reader.read(PIECE_BYTES)) is None:
                    pass
            finally:
                writer.close()
    return status.ready is True


async def _succeeds(probe: Probe, link: KeeperLink) -> bool:
    try:
        command = {"argv": list(probe.argv), "env": {}}
        ran = await link.run(command, timeout_s=ANSWER_TIMEOUT_S)
    except KeeperGone:
        return False
    return ran.get("code") == 0 and not ran.get("timed_out")
