"""Following a stream of the engine over any number of engines: whoever follows says where to go on.

An engine that was killed, or replaced by a later version, is brought back and asked again. One that was stopped on
purpose ends the following: a reader must not undo a stop.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from kt_cli import environment, session
from kt_client.errors import ENGINE_LOST, EngineAway, KtError

AGAIN_S = 0.2


def everything(target: Callable[[], str]) -> Iterator[dict[str, Any]]:
    """Yield each line of a stream; `target` gives its path, anew for each engine."""
    yield from _follow(lambda: session.lines(target()))


def about(name: str, target: Callable[[], str]) -> Iterator[dict[str, Any]]:
    """Yield each line of a stream about one agent; errors as `session.lines_about`."""
    yield from _follow(lambda: session.lines_about(name, target()))


def _follow(lines: Callable[[], Iterator[Any]]) -> Iterator[dict[str, Any]]:
    stopped = environment.state().engine_stopped
    while True:
        try:
            yield from lines()
            return  # what was followed has ended
        except EngineAway:
            pass
        except KtError as failure:
            if failure.code != ENGINE_LOST:
                raise
        # The marker is left before an engine that is stopped lets go of its connections.
        if stopped.exists():
            return
        time.sleep(AGAIN_S)
