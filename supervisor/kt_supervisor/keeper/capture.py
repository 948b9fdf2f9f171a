"""The agent's pipes, copied into append-only segments without losing a byte.

A segment is complete before the next one exists, so a reader at the end of segment N that finds N + 1 reads N to its
end once more and goes on. Segments break anywhere in a line: read them as one stream. When the disk refuses, the pipe
fills, and the agent waits: that is the back-pressure.
"""

import os
from collections.abc import Callable

from kt_supervisor.keeper import floor, loop
from kt_supervisor.keeper import segments as log_segments

RETRY_S = 0.25
SETTLE_S = 2.0
"""How long after its end a segment is made durable: by then the kernel has written most of it, and nobody waits."""


class Copier:
    """Moves one pipe into its segments as fast as both allow."""

    def __init__(
        self,
        events: loop.Loop,
        segments: log_segments.Segments,
        *,
        copied: Callable[[int], None],
        note: Callable[[str], None],
    ) -> None:
        self._loop = events
        self._segments = segments
        self._copied = copied
        self._note = note
        self._pipe: int | None = None
        self._held = False
        self._highest: int | None = None
        self._retry: loop.Timer | None = None
        self._settling: loop.Timer | None = None

    def start(self, pipe: int) -> None:
        """Take over `pipe`, the read end, and copy until it ends."""
        try:
            self._segments.open()  # so that a reader finds the first segment
        except OSError:
            pass  # the first byte tries again
        os.set_blocking(pipe, False)
        self._pipe = pipe
        self._watch()

    def position(self) -> dict[str, int]:
        """Return where the log ends."""
        return {"segment": self._segments.number, "offset": self._segments.offset}

    def pipe(self) -> int | None:
        """Return the read end while it is open, to be duplicated."""
        return self._pipe

    def hold(self, on: bool) -> None:
        """Stop or go on reading the pipe."""
        self._held = on
        if on and self._pipe is not None:
            self._loop.unwatch(self._pipe)
        else:
            self._watch()

    def allow(self, highest: int | None) -> None:
        """Begin no segment beyond `highest` until told otherwise: the agent waits at its pipe meanwhile."""
        self._highest = highest
        self._watch()

    def _is_bounded(self) -> bool:
        full = self._segments.is_full()
        return full and self._highest is not None and self._segments.number >= self._highest

    def drain(self, limit_bytes: int) -> bool:
        """Copy all that is in the pipe now, at most about `limit_bytes`; True unless the disk refuses."""
        copied_bytes = 0
        while copied_bytes <= limit_bytes and self._retry is None:
            got = self._step()
            if not got:
                break
            copied_bytes += got
        return self._retry is None

    def close(self) -> None:
        """Let go of the pipe and make the log durable, as far as the disk allows."""
        self._let_go()
        if self._settling is not None:
            self._settling.cancel()
        try:
            self._segments.sync()
        except OSError as error:
            self._note(f"the log may not survive a power cut: {error}")

    def _watch(self) -> None:
        if self._pipe is not None and not self._held and self._retry is None and not self._is_bounded():
            self._loop.watch(self._pipe, self._readable)

    def _readable(self, _events: int) -> None:
        self._step()
        if self._pipe is not None and self._is_bounded():
            self._loop.unwatch(self._pipe)
            self._copied(0)  # whoever makes room is told that it is waited for

    def _step(self) -> int:
        if self._pipe is None:
            return 0
        try:
            moved = self._segments.take(self._pipe)
        except BlockingIOError:
            return 0
        except OSError as error:
            self._wait(error)
            return 0
        if not moved:
            self._let_go()
            return 0
        if self._segments.retired() and self._settling is None:
            self._settling = self._loop.after(SETTLE_S, self._settle)
        self._copied(moved)
        return moved

    def _settle(self) -> None:
        self._settling = None
        try:
            self._segments.settle()
        except OSError as error:
            self._note(f"a segment may not survive a power cut: {error}")

    def _wait(self, error: OSError) -> None:
        if self._retry is not None:
            return
        self._note(f"output waits for the disk, {self._segments.in_hand_bytes()} bytes in hand: {error}")
        if self._pipe is not None:
            self._loop.unwatch(self._pipe)
        self._retry = self._loop.after(RETRY_S, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._step()
        if self._retry is None:
            self._note("output flows again")
            self._watch()

    def _let_go(self) -> None:
        if self._pipe is not None:
            self._loop.unwatch(self._pipe)
            os.close(self._pipe)
            self._pipe = None


class Output:
    """Both streams of the agent, and the floor below which neither is read."""

    def __init__(
        self,
        events: loop.Loop,
        *,
        limit_bytes: int,
        low: floor.Floor,
        copied: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        self._low = low
        self.segments = {
            name: log_segments.Segments(name, limit_bytes=limit_bytes) for name in ("out", "err")
        }

        def told(moved_bytes: int) -> None:
            copied()
            low.spent(moved_bytes)

        def noted(name: str) -> Callable[[str], None]:
            return lambda text: note(f"{name}: {text}")

        self._copiers = {
            name: Copier(events, segments, copied=told, note=noted(name))
            for name, segments in self.segments.items()
        }

    def start(self, **pipes: int | None) -> None:
        """Copy these read ends, by the stream's name, until they end."""
        for name, pipe in pipes.items():
            if pipe is not None:
                self._copiers[name].start(pipe)

    def go_on(self, pipes: dict[str, int | None]) -> None:
        """Copy these read ends behind what another keeper has copied."""
        for segments in self.segments.values():
            segments.resume()
            try:
                segments.open()
            except OSError:
                pass  # the first byte tries again
        self.start(**pipes)

    def gaps(self) -> list[str]:
        """Return what an earlier keeper may have lost when it was killed."""
        # The same disk and kernel: what cannot be spliced now could not be then.
        lossy = [name for name, segments in self.segments.items() if not segments.spliced]
        return [f"{name}: up to 64 KiB may have been in the hand of the killed keeper" for name in lossy]

    def allow(self, highest: dict[str, int]) -> None:
        """Begin no segment beyond these; a stream that is not named has no bound."""
        for name, copier in self._copiers.items():
            copier.allow(highest.get(name))

    def hold(self, on: bool) -> None:
        """Stop or go on reading the pipes."""
        for copier in self._copiers.values():
            copier.hold(on)

    def pipes(self) -> dict[str, int]:
        """Return the read ends that are still open, by name."""
        found = ((name, copier.pipe()) for name, copier in self._copiers.items())
        return {name: pipe for name, pipe in found if pipe is not None}

    def drain(self, limit_bytes: int) -> bool:
        """Copy what is there now; True unless the disk refuses."""
        drained = [copier.drain(limit_bytes) for copier in self._copiers.values()]
        return all(drained)

    def close(self) -> None:
        """Let go of both pipes and make the logs durable."""
        for copier in self._copiers.values():
            copier.close()

    def positions(self) -> dict[str, dict[str, int]]:
        """Return where each log ends."""
        return {name: copier.position() for name, copier in self._copiers.items()}
