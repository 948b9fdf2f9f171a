"""What a run needs: an engine, a provider, and a state directory of their own; and the end of all three.

Law: whatever happens in between, nothing is left. Where the engine does not stop when it is told to, what belongs to
this state directory is found by its name, and killed. A kit that is killed itself has an undertaker (`undertaker`), and
the next run sweeps what that one left (`estate`).
"""

import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Self

from kt_client.errors import KtError
from kt_conformance import estate, processes
from kt_conformance.bounded_client import BoundedClient
from kt_conformance.deadline import Deadline
from kt_conformance.provider import Provider
from kt_conformance.undertaker import Undertaker

NAME = "tck-subject"
SHORT_STOP_S = 2.0
STOP_TIMEOUT_S = 25.0


class Rig:
    """Everything is there while it is entered. A context manager, once."""

    def __init__(self, *, tell: Callable[[str], None] | None = None) -> None:
        """Begin with nothing; `tell` is told what earlier runs had left, on stderr unless said otherwise."""
        self._tell = tell or _on_stderr

    def __enter__(self) -> Self:
        """End what killed runs have left, make the state directory, and start engine and provider.

        Raises:
            KtError, OSError: there can be no engine; nothing is left.
        """
        for sentence in estate.sweep():
            self._tell(sentence)
        self.root, self._lock = estate.found()
        try:
            self._undertaker = Undertaker(self.root)
        except BaseException:
            shutil.rmtree(self.root, ignore_errors=True)
            os.close(self._lock)
            raise
        self.provider = Provider()
        self.kt = BoundedClient(self.root / estate.STATE)
        try:
            self.kt.engine_start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End everything."""
        self.close()

    def close(self) -> None:
        """End everything, also where somebody is impatient meanwhile (a second Ctrl-C)."""
        with _undisturbed():
            self.provider.release()
            try:
                self._stop()
            except (KtError, OSError):
                estate.forbid_another_engine(self.kt.files)
            estate.kill_what_is_left(self.root)
            self.provider.close()
            shutil.rmtree(self.root, ignore_errors=True)
            self._undertaker.dismiss()
            os.close(self._lock)

    def clear(self) -> None:
        """Have no subject any more: stopped where it runs, removed where it is registered."""
        with contextlib.suppress(KtError):
            self.kt.stop(NAME, timeout_s=SHORT_STOP_S)
        with contextlib.suppress(KtError):
            self.kt.remove(NAME, delete=True, force=True)

    def _stop(self) -> None:
        self.kt.deadline = Deadline(estate.ANSWER_S)
        if self.kt.engine_status()["running"]:
            self.kt.deadline = Deadline(STOP_TIMEOUT_S)
            self.clear()
        estate.stop_engine(self.kt, timeout_s=STOP_TIMEOUT_S)

    def ours(self) -> list[processes.Process]:
        """Return the processes of this run of the kit."""
        return estate.belonging(self.root)


def _on_stderr(sentence: str) -> None:
    sys.stderr.write(f"kt: {sentence}\n")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no signal from a terminal interrupt what is within; only the main thread can say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(name, signal.SIG_IGN) for name in names]
    try:
        yield
    finally:
        for name, handler in zip(names, before, strict=True):
            signal.signal(name, handler)
