"""One Run from borrowing to exit: the order of acts, each recorded before the next.

Which event may follow which phase is the table; what is done then is in the methods. The keeper never dies before its
agent: SIGTERM means stop with the default window, SIGINT and SIGHUP mean nothing.
"""

import os
import socket
from collections.abc import Callable

from kt_supervisor.keeper import (
    capture,
    commands,
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
)
from kt_supervisor.keeper.specification import Specification

BORROWING, SPAWNING, RUNNING, STOPPING, EXITED = "borrowing", "spawning", "running", "stopping", "exited"
TABLE: dict[tuple[str, str], str] = {
    (BORROWING, "borrowed"): SPAWNING,
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
_RETRY_S = 0.25
_LAST_DRAIN_BYTES = 4 * 1024 * 1024

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
        self.kept: listener.Kept | None = None
        self._loop = events
        self._spec = spec
        self._lock = lock
        self._umask = umask
        self._notes = notes
        self._announce = announce
        self.input = stdin.Input()
        self._tree = proctree.Tree()
        self.freezer = freeze.Freezer(events, self._tree, note=notes.add)
        self.commands = commands.Commands(events, spec, umask=umask, apart=self._tree.apart, note=notes.add)
        self._ladder = stop.Ladder(
            events, self._tree, freezer=self.freezer, beside=self.commands, done=self._emptied
        )
        self._child: spawn.Child | None = None
        self._borrowing: listener.Borrowing | None = None
        self._enforced: dict[str, str] = {}
        self._oom_kills: int | None = None
        self._spawn_error: str | None = None
        self._stop_asked = False
        self._ended_at_ns: int | None = None
        self.floor = floor.Floor(events, spec.free_floor_bytes, changed=self._disk)
        self.output = capture.Output(
            events,
            limit_bytes=spec.segment_limit_bytes,
            low=self.floor,
            copied=lambda: announce({"event": "output"}),
            note=notes.add,
        )

    def begin(self) -> None:
        """Borrow the listening socket if there is one to borrow, then spawn."""
        if self._spec.lend_from is None:
            self._become("borrowed")
            self._spawn()
            return
        self._borrowing = listener.Borrowing(
            self._loop, self._spec.lend_from, self._spec.instance_id, done=self._borrowed, failed=self._fail
        )

    def stop(self, timeout_s: float, *, command: requests.Command | None = None) -> None:
        """Empty the tree: `command`, TERM, at most `timeout_s` of patience, KILL; again: the earlier end counts."""
        if self.phase == EXITED:
            return
        self._stop_asked = True
        if self._borrowing is not None:
            self._borrowing.cancel()
            self._borrowing = None
            self._spawn_error = "stopped before it was started"
        if self.phase != STOPPING:
            self._become("stop")
        self._ladder.descend(timeout_s, command=None if command is None else self._stop_command(command))

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
            self._ended_at_ns = loop.wall_ns()
            self._announce({"event": "agent_exited"})
            if self._child is None and self.phase in (SPAWNING, RUNNING):
                self._sweep()
        self._ladder.changed()

    def _stop_command(self, command: requests.Command) -> Callable[[float, Callable[[bool], None]], None]:
        def start(timeout_s: float, over: Callable[[bool], None]) -> None:
            def done(told: Record) -> None:
                self._notes.add(f"the stop command ended: code {told['code']}, {told['error'] or 'no error'}")
                over(told["code"] == 0)

            try:
                self.commands.start(command, timeout_s=timeout_s, done=done)
            except requests.RequestInvalid as error:
                self._notes.add(str(error))
                over(False)

        return start

    def _become(self, event: str) -> None:
        self.phase = TABLE[self.phase, event]
        if self.phase == STOPPING:
            self.floor.lift()

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

    def _borrowed(self, listening: socket.socket, lender: socket.socket) -> None:
        self._borrowing = None
        self.kept = listener.Kept(
            self._loop, listening, grace_s=self._spec.gateway_grace_s, note=self._notes.add
        )
        self.kept.used_by_lender(lender)
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
            records.replace(places.RUN, self._record(child.pid))
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
        self._borrowing = None
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
        """The tree is empty, or its survivors are named: take the last words, then write down how it ended."""
        if self._child is not None:
            self._judged(loop.READ)
        if not self.output.drain(_LAST_DRAIN_BYTES) and not records.folder_gone():
            self._loop.after(_RETRY_S, self._emptied)
            return
        self.output.close()
        leaf = self._tree.leaf
        if leaf is not None:
            self._oom_kills = leaf.out_of_memory_kills()
            if not leaf.remove():
                self._notes.add(f"{leaf.path} could not be removed: something still lives there")
        self._write_exit()

    def _write_exit(self) -> None:
        record = self._exit_record()
        try:
            records.replace(places.EXIT, record)
        except OSError as error:
            if not records.folder_gone():
                self._notes.add(f"{places.EXIT} waits for the disk: {error}")
                self._loop.after(_RETRY_S, self._write_exit)
                return
        self.exit = record
        self._become("recorded")
        self.input.close()
        self._announce({"event": "exited", **record})

    def _record(self, agent_pid: int) -> Record:
        leaf = self._tree.leaf
        return {
            **records.identity(self._spec.run_id, self._spec.instance_id, agent_pid),
            "started_at_ns": loop.wall_ns(),
            "limits": self._enforced,
            "cgroup": None if leaf is None else leaf.path,
        }

    def _exit_record(self) -> Record:
        status = None if self.agent_pid is None else self._tree.statuses.get(self.agent_pid)
        return {
            **records.outcome(self._spec.run_id, status, spawn_error=self._spawn_error),
            "code_unknown": None,
            "oom_killed": None if self._oom_kills is None else self._oom_kills > 0,
            "gaps": [],
            "stop_asked": self._stop_asked,
            "forced": self._ladder.forced,
            "survivors": self._ladder.survivors,
            "ended_at_ns": self._ended_at_ns or loop.wall_ns(),
            **self.output.positions(),
        }
