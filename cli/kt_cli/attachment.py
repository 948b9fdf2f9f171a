"""Both ends of `attach`: this terminal (or pipe), and the raw stream to the engine.

The terminal stays in its own line mode, so that lines can be edited as ever; the key that leaves is made one more end
of a line (VEOL, termios(3)), which hands it to us at once.
"""

import codecs
import contextlib
import os
import select
import socket
import sys
import termios
from collections.abc import Iterator

from kt_cli import environment, terminal

_PIECE_BYTES = 64 << 10
LEFT, AGENT_ENDED = "left", "ended"


def converse(connection: socket.socket, first: bytes, *, key: bytes) -> str:
    """Pass lines and output on until somebody leaves; return who: `LEFT` or `AGENT_ENDED` (or its engine did).

    Raises:
        BrokenPipeError: nobody reads our output any more.
    """
    screen = Screen()
    # The key first: one that was typed before it ends a line stays in the terminal until there is an end of a line.
    with leaving_key(0, key):
        screen.show(first)
        typed = select.poll()
        typed.register(connection, select.POLLIN)
        typed.register(0, select.POLLIN)
        reader = -1 if terminal.is_terminal() else 1
        if reader == 1:
            typed.register(reader, 0)  # POLLERR comes unasked: whoever reads our output has gone (poll(2))
        ended_line = True
        while True:
            ready = dict(typed.poll())
            if ready.get(reader, 0) & select.POLLERR:
                raise BrokenPipeError
            if connection.fileno() in ready:
                data = _received(connection)
                if not data:
                    screen.end()
                    return AGENT_ENDED
                screen.show(data)
            if 0 in ready:
                data = os.read(0, _PIECE_BYTES)
                if os.isatty(0) and (not data or key in data):
                    return LEFT
                if not data:
                    typed.unregister(0)
                    data = b"" if ended_line else b"\n"
                else:
                    ended_line = data.endswith(b"\n")
                with contextlib.suppress(
                    OSError
                ):  # the agent has ended: what it said last is still to be read
                    connection.sendall(data)


def is_terminal() -> bool:
    """Return whether somebody types and reads here."""
    return os.isatty(0) and terminal.is_terminal()


@contextlib.contextmanager
def leaving_key(descriptor: int, key: bytes) -> Iterator[None]:
    """Have the terminal hand over a line at `key`, too; afterwards it is as it was."""
    if not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    during = termios.tcgetattr(descriptor)
    during[6][termios.VEOL] = key
    termios.tcsetattr(descriptor, termios.TCSADRAIN, during)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class Screen:
    """Standard output: bytes as they are in a pipe; on a terminal text, with colours and without other controls."""

    def __init__(self) -> None:
        self._terminal = terminal.is_terminal()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def show(self, data: bytes) -> None:
        """Write; an escape sequence that is not whole waits for its rest."""
        if not self._terminal:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        text, self._held = terminal.split_escape(self._held + self._decoder.decode(data))
        sys.stdout.write(terminal.stream(text, colour=environment.colour_wanted()))
        sys.stdout.flush()

    def end(self) -> None:
        """Write what still waits."""
        if self._terminal:
            sys.stdout.write(
                terminal.stream(self._held + self._decoder.decode(b"", final=True), colour=False)
            )
            sys.stdout.flush()


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_PIECE_BYTES)
    except OSError:
        return b""
