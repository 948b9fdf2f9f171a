"""Ports for those who bind them later."""

import itertools
import os
import socket

_FIRST, _COUNT = 10_000, 8_000
"""Below what systems give to connections and to `bind` of port 0, and apart from what the engine gives to agents."""

_turns = itertools.count(os.getpid() * 97)


def free() -> int:
    """Return a port that nobody has now, and that nobody gets who does not ask for it by number."""
    for _ in range(_COUNT):
        port = _FIRST + next(_turns) % _COUNT
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free port from {_FIRST} on")
