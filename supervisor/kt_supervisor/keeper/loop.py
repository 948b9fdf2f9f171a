"""One thread, one selector, timers on the monotonic clock: everything the keeper waits for.

The only file of the keeper that reads clocks. asyncio would cost each Run several MB.
"""

import heapq
import selectors
import time
from collections.abc import Callable

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
_PAUSE_AFTER_FAILURE_S = 0.05
_LONGEST_WAIT_S = 3600.0  # epoll_wait(2) counts milliseconds in an int


def wall_ns() -> int:
    """Return nanoseconds since 1970 UTC: for records, never for durations."""
    return time.time_ns()


def monotonic_s() -> float:
    """Return seconds of a clock that never goes back."""
    return time.monotonic()


def pause(for_s: float) -> None:
    """Wait, doing nothing else: for moments only."""
    time.sleep(for_s)


class Timer:
    """A call in the future that can be taken back."""

    __slots__ = ("callback", "due_s", "order")

    def __init__(self, due_s: float, order: int, callback: Callable[[], None]) -> None:
        self.due_s = due_s
        self.order = order
        self.callback: Callable[[], None] | None = callback

    def __lt__(self, other: "Timer") -> bool:
        return (self.due_s, self.order) < (other.due_s, other.order)

    def cancel(self) -> None:
        """Make sure that it does not fire; harmless when it has."""
        self.callback = None


class Loop:
    """Calls back when descriptors are ready and when timers are due."""

    def __init__(self, *, failed: Callable[[Exception], None]) -> None:
        """`failed` hears of what a callback raised: the loop goes on, since an agent hangs on it."""
        self._failed = failed
        self._selector = selectors.DefaultSelector()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._timers: list[Timer] = []
        self._order = 0
        self._running = True

    def now_s(self) -> float:
        """Return seconds of a clock that never goes back."""
        return monotonic_s()

    def watch(self, descriptor: int, callback: Callable[[int], None], events: int = READ) -> None:
        """Call `callback(ready events)` whenever `descriptor` is ready; replaces an earlier watch."""
        if descriptor in self._callbacks:
            self._selector.modify(descriptor, events)
        else:
            self._selector.register(descriptor, events)
        self._callbacks[descriptor] = callback

    def unwatch(self, descriptor: int) -> None:
        """Forget `descriptor`; call it before closing. Harmless when it is not watched."""
        if self._callbacks.pop(descriptor, None) is not None:
            self._selector.unregister(descriptor)

    def after(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once, `delay_s` from now."""
        self._order += 1
        timer = Timer(self.now_s() + delay_s, self._order, callback)
        heapq.heappush(self._timers, timer)
        return timer

    def stop(self) -> None:
        """Make `run` return after the present round."""
        self._running = False

    def run(self) -> None:
        """Serve until `stop`."""
        while self._running:
            for key, events in self._selector.select(self._patience_s()):
                callback = self._callbacks.get(key.fd)
                if callback is not None:
                    self._guarded(callback, events)
            self._fire()

    def _guarded(self, callback: Callable[..., None], *arguments: int) -> None:
        try:
            callback(*arguments)
        except Exception as error:
            self._failed(error)
            time.sleep(_PAUSE_AFTER_FAILURE_S)  # what fails for ever must not spin

    def _patience_s(self) -> float | None:
        while self._timers and self._timers[0].callback is None:
            heapq.heappop(self._timers)
        return min(max(0.0, self._timers[0].due_s - self.now_s()), _LONGEST_WAIT_S) if self._timers else None

    def _fire(self) -> None:
        now_s = self.now_s()
        while self._timers and self._timers[0].due_s <= now_s:
            callback = heapq.heappop(self._timers).callback
            if callback is not None:
                self._guarded(callback)
