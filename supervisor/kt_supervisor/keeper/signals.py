"""Signals to the keeper: SIGCHLD is a look at the children, SIGTERM a stop; nothing else ends it before its agent."""

import os
import signal
from collections.abc import Callable

from kt_supervisor.keeper import loop

_IGNORED = (
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
)


def watch(events: loop.Loop, *, asked_to_stop: Callable[[], None], children: Callable[[], None]) -> None:
    """Call back from the loop: `asked_to_stop` for SIGTERM, `children` for SIGCHLD."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)

    def ready(_events: int) -> None:
        try:
            arrived = os.read(ours, 4096)
        except BlockingIOError:
            return
        if signal.SIGTERM in arrived:
            asked_to_stop()
        children()

    events.watch(ours, ready)
