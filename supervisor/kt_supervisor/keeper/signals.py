"""Signals to the keeper itself: routed into a pipe, so that the one selector wakes for them too."""

import os
import signal


def catch_signals() -> int:
    """Route CHLD and TERM into a pipe and ignore what would end us; return the pipe's reading end."""
    reading, writing = os.pipe()
    for descriptor in (reading, writing):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    return reading
