"""Standing still: the whole tree frozen by its cgroup, or by SIGSTOP of every process until no scan finds one running.

There may be several reasons at once (the operator, a full disk); it thaws when the last one is gone. Anybody of the
same user can send SIGCONT, so it is enforced again every second while a reason lasts; without one nothing is done.
"""

import os
import signal
from collections.abc import Callable

from kt_supervisor.keeper import loop, proctree, system

OPERATOR, DISK = "operator", "disk"
BOUND_S = 2.0
AGAIN_S = 1.0
_LOOK_S = 0.002
_CALM_SCANS = 1
_CALM_SCANS_OF_STRANGERS = 10
_UNINTERRUPTIBLE = b"D"


class NotFrozen(Exception):
    """Something of the tree could not be made to stand still; it is tried again every second."""


class Freezer:
    """Holds a tree still while there is a reason to."""

    def __init__(self, events: loop.Loop, tree: proctree.Tree, *, note: Callable[[str], None]) -> None:
        self.reasons: set[str] = set()
        self._loop = events
        self._tree = tree
        self._note = note
        self._timer: loop.Timer | None = None
        self._stopped_before: set[tuple[int, int]] = set()
        self._first = True
        self._held = False

    def hold(self, reason: str) -> str:
        """Freeze for `reason`; return how: "cgroup" or "signals".

        Raises:
            NotFrozen: not all of it; the reason stays, and so do the attempts.
        """
        self.reasons.add(reason)
        if self._timer is None:
            self._timer = self._loop.after(AGAIN_S, self._again)
        return self._freeze()

    def release(self, reason: str) -> None:
        """Drop `reason`, and thaw if it was the last one; harmless when it was none."""
        if reason not in self.reasons:
            return
        self.reasons.discard(reason)
        if not self.reasons:
            self.thaw()

    def forget(self) -> None:
        """Enforce nothing any more, without waking anybody."""
        self.reasons.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def thaw(self) -> None:
        """Let everything run, whatever the reasons were."""
        if not self._held:
            return
        self.forget()
        if self._tree.leaf is not None:
            try:
                self._tree.leaf.freeze(False)
            except OSError as error:
                self._note(f"the cgroup could not be thawed: {error}")
        if system.LINUX:
            self._continue()
        else:
            self._tree.signal(signal.SIGCONT)
        self._first = True
        self._held = False

    def found(self, reason: str) -> None:
        """Take over a tree that somebody else froze for `reason`; it is enforced from now on."""
        self.reasons.add(reason)
        self._held, self._first = True, False
        self._timer = self._loop.after(0, self._again)

    def _again(self) -> None:
        self._timer = self._loop.after(AGAIN_S, self._again)
        try:
            self._freeze()
        except NotFrozen as error:
            self._note(str(error))

    def _freeze(self) -> str:
        self._held = True
        how = "signals"
        if self._tree.leaf is not None and self._freeze_leaf():
            how = "cgroup"
        if not system.LINUX:
            self._tree.signal(signal.SIGSTOP)
            return how
        self._stop_all(how)
        return how

    def _freeze_leaf(self) -> bool:
        leaf = self._tree.leaf
        assert leaf is not None
        if leaf.freezing() and leaf.frozen():
            return True
        try:
            leaf.freeze(True)
        except OSError as error:
            self._note(f"the cgroup cannot be frozen ({error}): signals it is")
            return False
        end_s = self._loop.now_s() + BOUND_S
        while not leaf.frozen() and leaf.populated():
            if self._loop.now_s() >= end_s:
                self._note(f"the cgroup is not frozen after {BOUND_S:g} s: signals, too")
                return False
            loop.pause(_LOOK_S)
        return True

    def _stop_all(self, how: str) -> None:
        # Whoever is stopped can neither fork nor change parents. A chain that forks and exits may slip through any
        # scan, but each of its steps leaves a zombie that nobody reaps meanwhile: a tree is calm when two scans in a
        # row find the same processes, dead or stopped. Init reaps an orphan's, so more scans are taken there.
        signalled: set[tuple[int, int]] = set()
        end_s = self._loop.now_s() + BOUND_S
        calm, before = 0, None
        while calm < (_CALM_SCANS if self._tree.told else _CALM_SCANS_OF_STRANGERS):
            found = self._tree.find()
            census = {(process.pid, process.start_ticks) for process in found}
            running = self._running([process for process in found if process.alive()], how, signalled)
            calm, before = (0 if running or census != before else calm + 1), census
            if running and self._loop.now_s() >= end_s:
                pids = ", ".join(str(process.pid) for process in running[:10])
                raise NotFrozen(
                    f"got processes {pids} still running after {BOUND_S:g} s of SIGSTOP, wanted none; "
                    "look at who they belong to, or stop the agent"
                )
            self._signal(running, signal.SIGSTOP)
            signalled.update((process.pid, process.start_ticks) for process in running)
            if running:
                loop.pause(_LOOK_S)

    def _running(
        self, found: list[proctree.Process], how: str, signalled: set[tuple[int, int]]
    ) -> list[proctree.Process]:
        if how == "cgroup" and self._tree.leaf is not None:
            inside = set(self._tree.leaf.members())
            found = [process for process in found if process.pid not in inside]
        elif self._first:
            # A job that its own shell has stopped stays stopped when we let go.
            self._stopped_before = {(p.pid, p.start_ticks) for p in found if p.stopped()}
            self._first = False
        # A wait that nothing interrupts, such as vfork's, runs no code; the signal waits at its end.
        return [
            process
            for process in found
            if not process.stopped()
            and not (process.state == _UNINTERRUPTIBLE and (process.pid, process.start_ticks) in signalled)
        ]

    def _signal(self, processes: list[proctree.Process], number: int) -> None:
        # Whole groups first: that is atomic against forks.
        done: set[int] = set()
        for process in processes:
            if process.group == self._tree.group and process.group not in done:
                if proctree.send(process, number, to_group=True):
                    done.add(process.group)
            elif process.group not in done:
                proctree.send(process, number)

    def _continue(self) -> None:
        for process in self._tree.members():
            if (process.pid, process.start_ticks) not in self._stopped_before:
                proctree.send(process, signal.SIGCONT)
        self._stopped_before.clear()


def stands_still(tree: proctree.Tree, pid: int) -> bool:
    """Return whether somebody has frozen the process `pid` or its cgroup."""
    if tree.leaf is not None and tree.leaf.freezing():
        return True
    process = proctree.read(pid) if pid != os.getpid() else None
    return process is not None and process.stopped()
