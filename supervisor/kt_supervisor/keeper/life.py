"""One Run from borrowing to exit: the order of acts, each recorded before the next.

Which event may follow which phase is the table; what is done then is in the methods. The keeper never dies before its
agent: SIGTERM means stop with the default window, SIGINT and SIGHUP mean nothing.
"""

import os
import signal
import socket
from collections.abc import Callable

from kt_supervisor.keeper import (
    PROTOCOL,
    capture,
    listener,
    loop,
    places,
    proctree,
    records,
    spawn,
    stop,
    system,
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
        self._tree = proctree.Tree()
        self._ladder = stop.Ladder(events, self._tree, done=self._emptied)
        self._child: spawn.Child | None = None
        self._borrowing: listener.Borrowing | None = None
        self._stdin: int | None = None
        self._spawn_error: str | None = None
        self._stop_asked = False
        self._ended_at_ns: int | None = None
        self._copiers = {stream: self._copier(stream) for stream in ("out", "err")}

    def begin(self) -> None:
        """Borrow the listening socket if there is one to borrow, then spawn."""
        if self._spec.lend_from is None:
            self._become("borrowed")
            self._spawn()
            return
        self._borrowing = listener.Borrowing(
            self._loop, self._spec.lend_from, self._spec.instance_id, done=self._borrowed, failed=self._fail
        )

    def stop(self, timeout_s: float) -> None:
        """Empty the tree: TERM, at most `timeout_s` of patience, KILL. Again with less: the earlier end counts."""
        if self.phase == EXITED:
            return
        self._stop_asked = True
        if self._borrowing is not None:
            self._borrowing.cancel()
            self._borrowing = None
            self._spawn_error = "stopped before it was started"
        if self.phase != STOPPING:
            self._become("stop")
        self._ladder.descend(timeout_s)

    def pipes(self) -> dict[str, int]:
        """Return the read ends of the agent's streams that are still open, by name."""
        found = ((stream, copier.pipe()) for stream, copier in self._copiers.items())
        return {stream: pipe for stream, pipe in found if pipe is not None}

    def children_changed(self) -> None:
        """Reap; the agent's own end is the end of the Run."""
        self._tree.reap(self.agent_pid)
        if self._ended_at_ns is None and self.agent_pid in self._tree.statuses:
            self._ended_at_ns = loop.wall_ns()
            self._announce({"event": "agent_exited"})
            if self._child is None and self.phase in (SPAWNING, RUNNING):
                self._sweep()
        self._ladder.changed()

    def _copier(self, stream: str) -> capture.Copier:
        return capture.Copier(
            self._loop,
            capture.Segments(stream, limit_bytes=self._spec.segment_limit_bytes),
            copied=lambda: self._announce({"event": "output"}),
            note=lambda text: self._notes.add(f"{stream}: {text}"),
        )

    def _become(self, event: str) -> None:
        self.phase = TABLE[self.phase, event]

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
            records.replace(places.RUN, self._record(child.pid))
        except OSError as error:
            child.abandon()
            self._fail(
                f"{self._spec.argv[0]}: its record could not be written: {error}; free some disk space"
            )
            return
        self._child = child
        child.release()
        self._copiers["out"].start(child.out)
        self._copiers["err"].start(child.err)
        os.set_blocking(child.verdict, False)
        self._loop.watch(child.verdict, self._judged)

    def _open_stdin(self) -> int:
        if not self._spec.interactive:
            return os.open(os.devnull, os.O_RDONLY)
        os.mkfifo(places.STDIN, 0o600)
        # Both ends stay open here: a writer that leaves is no end of file, and neither open() waits.
        self._stdin = os.open(places.STDIN, os.O_RDWR | os.O_NONBLOCK)
        return os.open(places.STDIN, os.O_RDONLY)

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
        drained = [copier.drain(_LAST_DRAIN_BYTES) for copier in self._copiers.values()]
        if not all(drained) and not records.folder_gone():
            self._loop.after(_RETRY_S, self._emptied)
            return
        for copier in self._copiers.values():
            copier.close()
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
        if self._stdin is not None:
            os.close(self._stdin)
        self._announce({"event": "exited", **record})

    def _record(self, agent_pid: int) -> Record:
        return {
            "protocol": PROTOCOL,
            "run_id": self._spec.run_id,
            "instance_id": self._spec.instance_id,
            "keeper_pid": os.getpid(),
            "keeper_start_ticks": proctree.start_ticks(os.getpid()),
            "agent_pid": agent_pid,
            "agent_start_ticks": proctree.start_ticks(agent_pid),
            "pgid": agent_pid,
            "boot_id": system.boot_id(),
            "started_at_ns": loop.wall_ns(),
        }

    def _exit_record(self) -> Record:
        status = None if self.agent_pid is None else self._tree.statuses.get(self.agent_pid)
        code = None if status is None or self._spawn_error else os.waitstatus_to_exitcode(status)
        return {
            "protocol": PROTOCOL,
            "run_id": self._spec.run_id,
            "code": None if code is None or code < 0 else code,
            "signal": None if code is None or code >= 0 else -code,
            "spawn_error": self._spawn_error,
            "stop_asked": self._stop_asked,
            "forced": self._ladder.forced,
            "survivors": self._ladder.survivors,
            "ended_at_ns": self._ended_at_ns or loop.wall_ns(),
            "out": self._copiers["out"].position(),
            "err": self._copiers["err"].position(),
        }


def watch_signals(events: loop.Loop, life: Life) -> None:
    """Turn SIGCHLD into a look at the children and SIGTERM into a stop; nothing else may end the keeper."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    for number in (
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
    ):
        signal.signal(number, signal.SIG_IGN)

    def ready(_events: int) -> None:
        try:
            arrived = os.read(ours, 4096)
        except BlockingIOError:
            return
        if signal.SIGTERM in arrived:
            life.stop(DEFAULT_WINDOW_S)
        life.children_changed()

    events.watch(ours, ready)
