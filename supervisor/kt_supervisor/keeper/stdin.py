"""The agent's standard input: /dev/null, or a FIFO whose ends the keeper holds, so that nobody's leaving ends it."""

import os

from kt_supervisor.keeper import places

OPEN, CLOSED, NONE = "open", "closed", "none"


class Input:
    """`in.fifo`, from its making to its end of file."""

    def __init__(self) -> None:
        self.state = NONE
        self._fifo: int | None = None

    def make(self) -> int:
        """Make the FIFO and return the read end for the agent, the caller's to close.

        Raises:
            OSError: it cannot be made.
        """
        os.mkfifo(places.STDIN, 0o600)
        self.hold()
        return os.open(places.STDIN, os.O_RDONLY)

    def hold(self) -> None:
        """Hold both ends of the FIFO that is there: a writer that leaves is no end of file, and no open() waits.

        Raises:
            OSError: there is none.
        """
        self._fifo = os.open(places.STDIN, os.O_RDWR | os.O_NONBLOCK)
        self.state = OPEN

    def hold_again(self) -> bool:
        """Hold the FIFO of a dead keeper; False where its end was told already, or it is gone."""
        try:
            self.hold()
        except OSError:
            self.state = CLOSED
            return False
        return True

    def close(self) -> None:
        """Let the agent read end of file once every other writer has left, too; harmless when closed."""
        if self._fifo is None:
            return
        os.close(self._fifo)
        self._fifo = None
        self.state = CLOSED
        try:
            os.unlink(places.STDIN)
        except OSError:
            pass
