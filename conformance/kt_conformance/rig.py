"""What a run needs: an engine, a provider, and a state directory of their own; and the end of all three.

Law: whatever happens in between, nothing is left. Where the engine does not stop when it is told to, what belongs to
this state directory is found by its name, and killed.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from kt_client import Client
from kt_client.errors import EngineAway, KtError
from kt_client.wire import Request
from kt_conformance import processes
from kt_conformance.deadline import Deadline
from kt_conformance.provider import Provider

NAME = "tck-subject"
KEEPER = "kt_supervisor/keeper"
ANSWER_S = 5.0
SHORT_STOP_S = 2.0
STOP_TIMEOUT_S = 25.0
KILL_TIMEOUT_S = 5.0
WHOLE_S = 240.0


class BoundedClient(Client):
    """A client whose every call ends with the time that the present section has."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self.deadline = Deadline(WHOLE_S)

    def perform(self, request: Request) -> Any:
        """Ask, within what is left."""
        return super().perform(self._bounded(request))

    def lines(self, request: Request, *, reader: int | None = None) -> Iterator[Any]:
        """Yield lines, within what is left."""
        yield from super().lines(self._bounded(request), reader=reader)

    def _bounded(self, request: Request) -> Request:
        left_s = max(self.deadline.left_s, 0.5)
        return replace(request, timeout_s=min(request.timeout_s or left_s, left_s))


class Rig:
    """Everything is there while it is entered. A context manager, once."""

    def __enter__(self) -> Self:
        """Make the state directory, and start engine and provider.

        Raises:
            KtError: there can be no engine; nothing is left.
        """
        self.root = Path(tempfile.mkdtemp(prefix="kt-tck-"))
        self.provider = Provider()
        self.kt = BoundedClient(self.root / "state")
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
                self._forbid_another_engine()
            self._kill_what_is_left()
            self.provider.close()
            shutil.rmtree(self.root, ignore_errors=True)

    def clear(self) -> None:
        """Have no subject any more: stopped where it runs, removed where it is registered."""
        with contextlib.suppress(KtError):
            self.kt.stop(NAME, timeout_s=SHORT_STOP_S)
        with contextlib.suppress(KtError):
            self.kt.remove(NAME, delete=True, force=True)

    def _stop(self) -> None:
        self.kt.deadline = Deadline(ANSWER_S)
        if not self.kt.engine_status()["running"]:
            raise EngineAway("it has ended", code="engine_away")
        self.kt.deadline = Deadline(STOP_TIMEOUT_S)
        self.clear()
        self.kt.engine_stop(everything=True, timeout_s=STOP_TIMEOUT_S)

    def ours(self) -> list[processes.Process]:
        """Return the processes of this state directory: by their command line, or by the Run that they are in.

        A keeper hides what it was started with: it is known by the agent that it is the parent of.
        """
        if not processes.visible():
            return []
        name = str(self.root)
        runs = self.kt.files.runs
        marks = {f"KT_RUN={run.name}" for run in runs.iterdir()} if runs.is_dir() else set()
        found = {}
        for process in processes.everyone():
            named = any(name in word for word in processes.arguments(process.pid))
            inside = bool(marks & _marks_of(process.pid))
            if process.pid != os.getpid() and (named or inside):
                found[process.pid] = process
            if inside and (keeper := _keeper_of(process)) is not None:
                found[keeper.pid] = keeper
        return list(found.values())

    def _forbid_another_engine(self) -> None:
        """Tell keepers that nobody wants an engine here any more, so that none brings it back."""
        with contextlib.suppress(OSError):
            self.kt.files.engine_stopped.write_text("the conformance kit has ended\n")

    def _kill_what_is_left(self) -> None:
        deadline = Deadline(KILL_TIMEOUT_S)
        while (left := self.ours()) and deadline.left_s:
            for process in left:
                with contextlib.suppress(OSError):
                    os.kill(process.pid, signal.SIGKILL)
            threading.Event().wait(0.05)


def _keeper_of(process: processes.Process) -> processes.Process | None:
    parent = processes.read(process.parent)
    ours = parent is not None and any(KEEPER in word for word in processes.arguments(parent.pid))
    return parent if ours else None


def _marks_of(pid: int) -> set[str]:
    environment = processes.environment(pid)
    return {f"KT_RUN={environment['KT_RUN']}"} if "KT_RUN" in environment else set()


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
