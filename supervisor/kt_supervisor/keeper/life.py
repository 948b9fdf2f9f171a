"""One Run from borrowing to exit: the order of acts, each recorded before the next.

Which event may follow which phase is the table; what is done then is in the methods. The keeper never dies before its
agent: SIGTERM means stop with the default window, SIGINT and SIGHUP mean nothing.
"""

import os
from collections.abc import Callable

from kt_supervisor.keeper import (
    capture,
    commands,
    ending,
    floor,
    freeze,
    limits,
    listener,
    loop,
    places,
    proctree,
    records,
    requests,
    spawn,
    stdin,
    stop,
    takeover,
)
from kt_supervisor.keeper.specification import Specification, Takeover

BORROWING, SPAWNING, RUNNING, STOPPING, EXITED = "borrowing", "spawning", "running", "stopping", "exited"
TABLE: dict[tuple[str, str], str] = {
    (BORROWING, "borrowed"): SPAWNING,
    (BORROWING, "taken over"): RUNNING,
    (BORROWING, "failed"): STOPPING,
    (BORROWING, "stop"): STOPPING,
    (SPAWNING, "started"): RUNNING,
    (SPAWNING, "failed"): STOPPING,
    (SPAWNING, "stop"): STOPPING,
    (SPAWNING, "ended"): STOPPING,
    (RUNNING, "stop"): STOPPING,
    (RUNNING, "ended"): STOPPING,
    (STOPPING, "recorded"): EXITED,
}

DEFAULT_WINDOW_S = 10.0

Record = dict[str, object]


class Life:
    """The agent, its tree, its output and its records. Tells `announce(event)` what the engine should know."""

    def __init__(
        self,
        events: loop.Loop,
        spec: Specification,
        *,
        lock: int,
        umask: int,
        notes: records.Notes,
        announce: Callable[[Record], None],
    ) -> None:
        self.phase = BORROWING
        self.agent_pid: int | None = None
        self.exit: Record | None = None
        self._loop = events
        self._spec = spec
        self._lock = lock
        self._umask = umask
        self._notes = notes
        self._announce = announce
        self.lending = listener.Lending(events, spec, note=notes.add)
        self.input = stdin.Input()
        self._tree = proctree.Tree()
        self.freezer = freeze.Freezer(events, self._tree, note=notes.add)
        self.commands = commands.Commands(events, spec, umask=umask, apart=self._tree.apart, note=notes.add)
        self._ladder = stop.Ladder(
            events, self._tree, freezer=self.freezer, beside=self.commands, done=self._emptied
        )
        self._child: spawn.Child | None = None
        self._enforced: dict[str, str] = {}
        self._code_unknown: str | None = None
        self._gaps: list[str] = []
        self._spawn_error: str | None = None
        self._stop_asked = False
        self._ended_at_ns: int | None = None
        self._awaited = False
        self.floor = floor.Floor(events, spec.free_floor_bytes, changed=self._disk)
        self.output = capture.Output(
            events,
            limit_bytes=spec.segment_limit_bytes,
            low=self.floor,
            copied=lambda: announce({"event": "output"}),
            note=notes.add,
        )
        self._ending = ending.Ending(
            events,
            output=self.output,
            tree=self._tree,
            note=notes.add,
            facts=self._facts,
            over=self._recorded,
        )

    def begin(self) -> None:
        """Borrow the listening socket if there is one to borrow, then spawn; or take over what lives already."""
        if self._spec.takeover is not None:
            self._take_over(self._spec.takeover)
            return
        self.lending.borrow(done=self._borrowed, failed=self._fail)

    def stop(self, timeout_s: float, *, command: requests.Command | None = None) -> None:
        """Empty the tree: `command`, TERM, at most `timeout_s` of patience, KILL; again: the earlier end counts."""
        if self.phase == EXITED:
            return
        self._stop_asked = True
        if self.phase == BORROWING:
            self._spawn_error = "stopped before it was started"
        if self.phase != STOPPING:
            self._become("stop")
        first = None if command is None else stop.by_command(self.commands, command, note=self._notes.add)
        self._ladder.descend(timeout_s, command=first)

    def pause(self) -> str:
        """Freeze the tree; return how.

        Raises:
            RequestInvalid: there is no running agent.
            NotFrozen: not all of it stands still; it is tried again every second.
        """
        if self.phase != RUNNING:
            raise requests.RequestInvalid(f"the Run is {self.phase}, wanted running; only that can be paused")
        return self.freezer.hold(freeze.OPERATOR)

    def run(self, command: requests.Command, *, timeout_s: float, done: Callable[[Record], None]) -> None:
        """Run a command beside the agent. Raises RequestInvalid."""
        if self.phase == STOPPING:
            raise requests.RequestInvalid("the Run is stopping, wanted running or exited; wait for its end")
        self.commands.start(command, timeout_s=timeout_s, done=done)

    def children_changed(self) -> None:
        """Reap; the agent's own end is the end of the Run."""
        self.commands.reaped(self._tree.reap(self.agent_pid))
        if self._ended_at_ns is None and self.agent_pid in self._tree.statuses:
            self._ended()
        self._ladder.changed()

    def _ended(self) -> None:
        self._ended_at_ns = loop.wall_ns()
        self._announce({"event": "agent_exited"})
        if self._child is None and self.phase in (SPAWNING, RUNNING):
            self._sweep()

    def _become(self, event: str) -> None:
        self.phase = TABLE[self.phase, event]
        if self.phase == STOPPING:
            self.floor.lift()
            self.lending.cancel()

    def _disk(self, low: bool) -> None:
        self.output.hold(low)
        self._notes.add(f"the disk is {'low, the agent waits' if low else 'no longer low'}")
        if self.phase != RUNNING:
            return
        if not low:
            self.freezer.release(freeze.DISK)
        else:
            try:
                self.freezer.hold(freeze.DISK)
            except freeze.NotFrozen as error:
                self._notes.add(str(error))
        self._announce({"event": "disk_low" if low else "disk_ok"})

    def _borrowed(self) -> None:
        self._become("borrowed")
        self._spawn()

    def _spawn(self) -> None:
        try:
            stdin = self._open_stdin()
            try:
                child = spawn.fork(self._spec, lock=self._lock, stdin=stdin, umask=self._umask)
            finally:
                os.close(stdin)
        except OSError as error:
            self._fail(f"{self._spec.argv[0]}: could not be started: {error}")
            return
        self.agent_pid = child.pid
        try:
            self._tree.leaf, self._enforced = limits.enforce(self._spec, child.pid, note=self._notes.add)
            records.replace(
                places.RUN,
                records.identity(self._spec.run_id, self._spec.instance_id, child.pid)
                | takeover.beginning(child.out, child.err, leaf=self._tree.leaf, limits=self._enforced),
            )
        except OSError as error:
            child.abandon()
            self._fail(
                f"{self._spec.argv[0]}: its record could not be written: {error}; free some disk space"
            )
            return
        self._child = child
        child.release()
        self.output.start(out=child.out, err=child.err)
        os.set_blocking(child.verdict, False)
        self._loop.watch(child.verdict, self._judged)

    def _open_stdin(self) -> int:
        return self.input.make() if self._spec.interactive else os.open(os.devnull, os.O_RDONLY)

    def _judged(self, _events: int) -> None:
        child = self._child
        assert child is not None
        try:
            verdict = os.read(child.verdict, 1024)
        except BlockingIOError:
            return
        self._loop.unwatch(child.verdict)
        os.close(child.verdict)
        self._child = None
        self._tree.group = child.pid
        if verdict:
            self._spawn_error = spawn.why(self._spec, verdict)
        elif self.phase == SPAWNING:
            self._become("started")
            self._announce({"event": "started"})
            if self.floor.low:
                self._disk(True)
        if verdict or self._ended_at_ns is not None:
            self._sweep()

    def _fail(self, why: str) -> None:
        self._notes.add(why)
        self._spawn_error = why
        self._become("failed")
        self._ladder.descend(0)

    def _sweep(self) -> None:
        if self.phase == STOPPING:
            return  # whoever stops it said how long to wait
        self._become("failed" if self._spawn_error else "ended")
        self._ladder.descend(self._spec.sweep_grace_s)

    def _emptied(self) -> None:
        if self._child is not None:
            self._judged(loop.READ)
        self._awaited = self._spec.takeover is not None and self._ended_at_ns is None
        if self._awaited and self.agent_pid in self._ladder.survivors:
            self._awaited, self._code_unknown = False, "the agent did not end"
        if not self._awaited:
            self._ending.begin()

    def _recorded(self, record: Record) -> None:
        self.exit = record
        self._become("recorded")
        self.input.close()
        self._announce({"event": "exited", **record})

    def _facts(self) -> Record:
        status = None if self.agent_pid is None else self._tree.statuses.get(self.agent_pid)
        return {
            **records.outcome(self._spec.run_id, status, spawn_error=self._spawn_error),
            "code_unknown": self._code_unknown,
            "gaps": self._gaps if self._spec.takeover is None else self._gaps + self.output.gaps(),
            "stop_asked": self._stop_asked,
            "stop_command": self._ladder.command,
            "forced": self._ladder.forced,
            "survivors": self._ladder.survivors,
            "ended_at_ns": self._ended_at_ns or loop.wall_ns(),
        }

    def _take_over(self, orphan: Takeover) -> None:
        record, tree, mark = takeover.recorded(), self._tree, self._spec.env.get(takeover.MARK)
        self.agent_pid = tree.group = orphan.agent_pid
        tree.leaf = takeover.leaf_of(record)
        tree.find = takeover.Orphans(orphan, mark, leaf=tree.leaf, apart=tree.apart).members
        tree.told = False
        pipes, self._gaps = takeover.pipes(self._spec, record, tree.members())
        self.output.go_on(pipes)
        try:
            records.replace(places.RUN, takeover.continued(record, self._spec, orphan))
        except OSError as error:
            self._notes.add(f"{places.RUN} still names the dead keeper: {error}")
        if self._spec.interactive and not self.input.hold_again():
            self._gaps.append("stdin: there is no FIFO any more; nothing can be sent")
        self._become("taken over")
        if freeze.stands_still(tree, orphan.agent_pid):
            self.freezer.found(freeze.OPERATOR)
        takeover.Watch(self._loop, orphan, gone=self._gone)
        self.lending.borrow_at_last()

    def _gone(self, status: int | None, why_unknown: str | None) -> None:
        assert self.agent_pid is not None
        if status is not None:
            self._tree.statuses[self.agent_pid] = status
        self._code_unknown = why_unknown
        self._ended()
        if self._awaited:
            self._ending.begin()
