"""The keeper's loop: one thread, one selector, and the parts that it wakes.

Laws: it never dies before its agent (TERM to the keeper stops the agent first; HUP and INT mean nothing to it); it
waits for nobody but the kernel; the exit record is on disk before anybody is told.
"""

import contextlib
import json
import logging
import os
import selectors
import signal
import time
import zlib
from pathlib import Path
from typing import Any

from kt_ledger.clock import SystemClock
from kt_ledger.durable import replace_file
from kt_ledger.lending import LendingRefused, refuse
from kt_supervisor.keeper import PROTOCOL, child, listener, tree
from kt_supervisor.keeper.control import Connection, Control
from kt_supervisor.keeper.engine_watch import EngineWatch
from kt_supervisor.keeper.ladder import Ladder, Rung
from kt_supervisor.keeper.output import Output
from kt_supervisor.keeper.signals import catch_signals
from kt_supervisor.keeper.spec import Spec

TERM_WINDOW_S = 10.0
"""What a TERM to the keeper itself (a machine that shuts down) leaves the agent to end by itself."""

LOOK_S = 0.02
WRITE_AGAIN_S = 0.5
logger = logging.getLogger("keeper")


class Keeper:
    """One Run, from its specification to its exit record."""

    def __init__(self, spec: Spec, *, lock: int) -> None:
        self._spec = spec
        self._lock = lock
        self._clock = SystemClock()
        self._selector = selectors.DefaultSelector()
        self._phase = "borrowing"
        self._pid: int | None = None
        self._status: int | None = None
        self._spawn_error: str | None = None
        self._stop_asked = False
        self._exit: dict[str, Any] | None = None
        self._released = False
        self._unwritten: dict[Path, dict[str, Any]] = {}
        self._write_again_s: float | None = None
        self._ladder = Ladder()
        self._next_look_s = 0.0
        self._listener: listener.KeptListener | None = None
        self._output = Output(
            spec.files, self._selector, limit_bytes=spec.segment_limit_bytes, clock=self._clock
        )
        self._wakeups = catch_signals()
        self._selector.register(self._wakeups, selectors.EVENT_READ, self._signalled)
        self._control = Control(spec.files, self._selector, self._answer)
        spread = zlib.crc32(spec.run_id.encode()) % 1000 / 1000
        self._watch = EngineWatch(now_s=time.monotonic(), wait_s=spec.engine_wait_s, spread=spread)

    def run(self) -> int:
        """Run to the end; return the keeper's own exit code."""
        self._start()
        while not self._is_over():
            for key, _ in self._selector.select(self._pause_s(time.monotonic())):
                key.data()
            self._reap()
            if self._output.take_news(time.monotonic()):
                self._control.tell_engine({"event": "output"})
            self._tick(time.monotonic())
        self._control.close()
        return 0

    def _is_over(self) -> bool:
        return self._phase == "exited" and (self._released or not self._control.engine_listens)

    # -- beginning ---------------------------------------------------------------------------------------------
    def _start(self) -> None:
        spec = self._spec
        try:
            if spec.lend_from:
                self._listener = listener.borrow(
                    spec.lend_from, spec.instance_id, self._selector, grace_s=spec.gateway_grace_s
                )
            self._phase = "spawning"
            self._pid, pipes = child.spawn_agent(spec, lock=self._lock, note=self._note)
        except (LendingRefused, child.SpawnFailed) as error:
            self._spawn_error = str(error)
            self._finish()
            return
        self._output.follow(pipes.out, pipes.err)
        self._phase = "running"
        self._control.tell_engine({"event": "started", "agent_pid": self._pid})

    def _note(self, agent_pid: int) -> None:
        """Write down who runs, before it does."""
        self._unwritten[self._spec.files.record] = {
            "protocol": PROTOCOL,
            "run_id": self._spec.run_id,
            "instance_id": self._spec.instance_id,
            "keeper_pid": os.getpid(),
            "keeper_start_ticks": tree.start_ticks(os.getpid()),
            "agent_pid": agent_pid,
            "agent_start_ticks": tree.start_ticks(agent_pid),
            "pgid": agent_pid,
            "boot_id": tree.boot_id(),
            "started_at_ns": self._clock.wall_ns(),
        }
        self._write_records()

    # -- the loop's parts --------------------------------------------------------------------------------------
    def _tick(self, now_s: float) -> None:
        if self._listener:
            self._listener.tick(now_s)
        self._output.tick(now_s)
        if self._ladder.climbing and now_s >= self._next_look_s:
            self._next_look_s = now_s + LOOK_S
            self._climb(now_s)
        if self._ladder.rung is Rung.OVER and self._exit is None and self._output.drained():
            self._finish()
        if self._write_again_s is not None and now_s >= self._write_again_s:
            self._write_records()
        if self._watch.is_due(now_s):
            self._revive_engine()

    def _pause_s(self, now_s: float) -> float | None:
        wanted = [self._output.deadline_s(), self._watch.deadline_s(), self._write_again_s]
        wanted.append(self._listener.deadline_s() if self._listener else None)
        wanted.append(self._next_look_s if self._ladder.climbing else None)
        if self._ladder.rung is Rung.OVER and self._exit is None:
            wanted.append(now_s + LOOK_S)
        times = [deadline_s for deadline_s in wanted if deadline_s is not None]
        return max(0.0, min(times) - now_s) if times else None

    def _climb(self, now_s: float) -> None:
        # The environment is the last net, for what slipped out of the tree: looked at when the tree seems empty.
        alive = tree.descendants(os.getpid()) or tree.carrying(f"KT_RUN={self._spec.run_id}")
        for wanted in self._ladder.look(now_s, alive):
            tree.send(wanted.process, wanted.number)
        self._reap()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._pid and self._status is None:
                self._agent_ended(status)

    def _agent_ended(self, status: int) -> None:
        self._status = status
        self._control.tell_engine({"event": "agent_exited", **_how(status)})
        # The main process ends the Run: what it left behind gets a short time, not the operator's.
        self._ladder.begin(time.monotonic(), timeout_s=self._spec.sweep_grace_s)
        self._next_look_s = 0.0

    def _finish(self) -> None:
        self._output.close()
        self._exit = {
            "protocol": PROTOCOL,
            "run_id": self._spec.run_id,
            **_how(self._status),
            "spawn_error": self._spawn_error,
            "stop_asked": self._stop_asked,
            "forced": self._ladder.forced,
            "survivors": list(self._ladder.survivors),
            "ended_at_ns": self._clock.wall_ns(),
            **self._output.ends(),
        }
        self._unwritten[self._spec.files.exit] = self._exit
        if self._listener:
            self._listener.close()
            self._listener = None
        self._write_records()

    def _write_records(self) -> None:
        """Write what waits; a disk that refuses is tried again, since a Run's end must not be lost."""
        for path, record in list(self._unwritten.items()):
            try:
                replace_file(path, json.dumps(record).encode())
            except OSError as error:
                logger.warning("cannot write %s: %s; trying again", path.name, error)
                self._write_again_s = time.monotonic() + WRITE_AGAIN_S
                return
            del self._unwritten[path]
        self._write_again_s = None
        if self._exit and self._phase != "exited":
            self._phase = "exited"
            self._control.tell_engine({"event": "exited", **self._exit})

    def _revive_engine(self) -> None:
        spec = self._spec
        if not spec.engine_command or spec.state.engine_stopped.exists():
            return
        logger.warning("no engine is there: starting one")
        try:
            child.spawn_engine(spec)
        except OSError as error:
            logger.warning("cannot start an engine: %s", error)

    # -- requests and signals ----------------------------------------------------------------------------------
    def _answer(self, request: dict[str, Any], connection: Connection) -> dict[str, Any] | None:
        op = request.get("op")
        if op == "status":
            return self._facts()
        if op == "hello":
            return self._hello(request, connection)
        if op == "stop":
            return self._stop(request.get("timeout_s", TERM_WINDOW_S))
        if op == "release":
            self._released = True
            return {"ok": True}
        if op == "lend":
            self._lend(request, connection)
            return None
        return {"ok": False, "error": f"got {str(op)[:40]!r}, wanted status, hello, stop, release or lend"}

    def _facts(self) -> dict[str, Any]:
        facts = {"ok": True, "protocol": PROTOCOL, "run_id": self._spec.run_id, "phase": self._phase}
        facts |= {"keeper_pid": os.getpid(), "agent_pid": self._pid}
        return facts | ({"exit": self._exit} if self._exit else {})

    def _hello(self, request: dict[str, Any], connection: Connection) -> dict[str, Any]:
        if request.get("protocol") != PROTOCOL:
            return {"ok": False, "error": f"this keeper speaks protocol {PROTOCOL}", "protocol": PROTOCOL}
        connection.engine = True
        connection.on_close = self._engine_left
        self._watch.engine_came()
        return self._facts()

    def _engine_left(self) -> None:
        if not self._control.engine_listens:
            self._watch.engine_went(time.monotonic())

    def _stop(self, timeout_s: object) -> dict[str, Any]:
        if not isinstance(timeout_s, int | float) or isinstance(timeout_s, bool) or not 0 <= timeout_s < 1e9:
            return {"ok": False, "error": "timeout_s wants a number of seconds, 0 or more"}
        self._stop_asked = True
        if self._phase == "running":
            self._phase = "stopping"
        self._ladder.begin(time.monotonic(), timeout_s=timeout_s)
        self._next_look_s = 0.0
        return {"ok": True}

    def _lend(self, request: dict[str, Any], connection: Connection) -> None:
        with contextlib.suppress(OSError):
            if self._listener is None or request.get("instance") != self._spec.instance_id:
                refuse(connection.socket, "this keeper holds no such listening socket")
            else:
                self._listener.lend(connection)

    def _signalled(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if signal.SIGTERM in os.read(self._wakeups, 512):
                self._stop(TERM_WINDOW_S)


def _how(status: int | None) -> dict[str, int | None]:
    if status is None:
        return {"code": None, "signal": None}
    code = os.waitstatus_to_exitcode(status)
    return {"code": code if code >= 0 else None, "signal": -code if code < 0 else None}
