"""The agent's two pipes, copied into segments as they fill.

Never blocks: a stream whose disk refuses bytes is not read until the disk takes them, so that the agent is held back by
its own full pipe and nothing is lost. News of output is passed on at most once in 20 ms.
"""

import logging
import os
import selectors
from dataclasses import dataclass
from typing import Any

from kt_ledger.clock import Clock
from kt_ledger.layout import RunLayout
from kt_supervisor.keeper.logs import SegmentWriter

READ_BYTES = 64 << 10
DRAIN_PORTIONS = 64  # a pipe holds 16 by default; more can only come from a survivor that writes on
NEWS_S = 0.02
RETRY_S = 0.5
logger = logging.getLogger("keeper")


@dataclass(slots=True)
class _Stream:
    name: str
    writer: SegmentWriter
    pipe: int | None = None
    ended: bool = False
    reading: bool = False
    complained: bool = False


class Output:
    """Both streams of one Run."""

    def __init__(
        self, files: RunLayout, selector: selectors.BaseSelector, *, limit_bytes: int, clock: Clock
    ) -> None:
        self._selector = selector
        self._streams = [
            _Stream(name, SegmentWriter(files, name, limit_bytes=limit_bytes, clock=clock))
            for name in ("out", "err")
        ]
        self._news = False
        self._told_s = 0.0
        self._retry_s: float | None = None

    def follow(self, out: int, err: int) -> None:
        """Begin to copy from the two pipes."""
        for stream, pipe in zip(self._streams, (out, err), strict=True):
            stream.pipe = pipe
            self._read_again(stream)

    def tick(self, now_s: float) -> None:
        """Try again what the disk refused."""
        if self._retry_s is None or now_s < self._retry_s:
            return
        self._retry_s = None
        for stream in self._streams:
            if stream.writer.blocked:
                self._took(stream, stream.writer.retry(), now_s)

    def deadline_s(self) -> float | None:
        """Return when `tick` or `take_news` is wanted."""
        news_s = self._told_s + NEWS_S if self._news else None
        times = [at_s for at_s in (self._retry_s, news_s) if at_s is not None]
        return min(times) if times else None

    def take_news(self, now_s: float) -> bool:
        """Return whether to tell of new output now."""
        if not self._news or now_s < self._told_s + NEWS_S:
            return False
        self._news = False
        self._told_s = now_s
        return True

    def drained(self) -> bool:
        """Read what is left without waiting; return whether all of it is in the segments."""
        for stream in self._streams:
            for _ in range(DRAIN_PORTIONS):
                if stream.pipe is None or stream.ended or stream.writer.blocked or not self._copy(stream):
                    break
        return not any(stream.writer.blocked for stream in self._streams)

    def ends(self) -> dict[str, Any]:
        """Return where each log ends, by stream."""
        return {stream.name: stream.writer.end for stream in self._streams}

    def close(self) -> None:
        """Stop reading and make the segments durable."""
        for stream in self._streams:
            self._read_no_more(stream)
            if stream.pipe is not None:
                os.close(stream.pipe)
                stream.pipe = None
            stream.writer.close()

    def _copy(self, stream: _Stream) -> bool:
        """Copy one portion; return whether there may be more at once."""
        assert stream.pipe is not None
        try:
            data = os.read(stream.pipe, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            stream.ended = True
            self._read_no_more(stream)
            return False
        self._news = True
        self._took(stream, stream.writer.append(data), None)
        return True

    def _took(self, stream: _Stream, error: OSError | None, now_s: float | None) -> None:
        if error is None:
            if stream.complained:
                logger.warning("the disk takes the agent's output again")
                stream.complained = False
            if stream.pipe is not None and not stream.ended:
                self._read_again(stream)
            return
        if not stream.complained:
            logger.warning("the disk refuses the agent's output (%s): the agent waits", error.strerror)
            stream.complained = True
        self._read_no_more(stream)
        self._retry_s = RETRY_S + (now_s if now_s is not None else self._told_s)

    def _read_again(self, stream: _Stream) -> None:
        if not stream.reading and stream.pipe is not None:
            self._selector.register(stream.pipe, selectors.EVENT_READ, lambda: self._copy(stream))
            stream.reading = True

    def _read_no_more(self, stream: _Stream) -> None:
        if stream.reading and stream.pipe is not None:
            self._selector.unregister(stream.pipe)
            stream.reading = False
