"""A small process that outlives its kit: `python -m kt_conformance.undertaker`, started by the kit for itself.

It reads the kit's folder from its standard input, and then waits there for a word. The kit alone holds the other end:
with the word "done" everything is cleaned up already; where the end comes without it, the kit was killed, and the
folder's engine is ended with everything, and the folder removed (`estate`).

It is in a session of its own, so that neither Ctrl-C nor what kills the kit's process group reaches it, and it has none
of the kit's output, so that nobody waits for its end. While it waits it has loaded nothing but the standard library.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import IO

DONE = b"done\n"
DEATH_S = 5.0
"""How long the kernel may take to let go of the lock of a process whose pipe it has closed already."""
END_S = 5.0


class Undertaker:
    """The kit's end of the pipe."""

    def __init__(self, root: Path) -> None:
        """Start it. Raises OSError: there is none."""
        self._process = subprocess.Popen(
            # -P: a folder named kt_conformance where the kit was started is not it (python(1))
            [sys.executable, "-P", "-m", "kt_conformance.undertaker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        self._say(json.dumps(str(root)).encode() + b"\n")

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def dismiss(self) -> None:
        """Have it end and do nothing: everything is cleaned up."""
        self._say(DONE)
        with contextlib.suppress(OSError):
            self._pipe().close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _say(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # it was killed: the next run of the kit is the second net
            self._pipe().write(line)
            self._pipe().flush()

    def _pipe(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin


def main() -> int:
    """Wait for the word, and do without it what the kit cannot do any more."""
    folder = sys.stdin.buffer.readline()
    if not folder.endswith(b"\n") or sys.stdin.buffer.readline() == DONE:
        return 0
    from kt_conformance import estate

    root = Path(json.loads(folder))
    with estate.taken_over(root, within_s=DEATH_S) as note:
        return 0 if note is None or estate.bury(root) else 1


if __name__ == "__main__":
    sys.exit(main())
