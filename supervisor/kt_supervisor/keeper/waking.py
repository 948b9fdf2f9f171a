"""Bringing a dead engine back, once among many keepers.

The engine's own lock elects one of any number of engines; what is saved here is starting a crowd of them. Keepers wait
for different times (by pid), look whether the engine answers already, and one at a time holds `engine.waking`.
"""

import fcntl
import os
import signal
import socket
from collections.abc import Callable

from kt_supervisor.keeper import listener, loop, places, records, spawn, specification, system

PATIENCE_S = 5.0
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 30.0
STABLE_S = 10.0
UNSTABLE_DELAY_S = 0.8
"""The longest delay after an engine that came up and soon ended: slow enough not to spin; an agent's lines wait."""


class Waking:
    """Watches over the engine's presence. `arrived` and `left` are told by the owner of the connections."""

    def __init__(
        self,
        events: loop.Loop,
        spec: specification.Specification,
        *,
        note: Callable[[str], None],
        nothing_left: Callable[[], None],
    ) -> None:
        """Wait for an engine; `nothing_left` is called once where the Run's folder was deleted meanwhile."""
        self._nothing_left = nothing_left
        self._loop = events
        self._spec = spec
        self._note = note
        self._delay_s = FIRST_DELAY_S
        self._arrived_s: float | None = None
        self._turn: int | None = None
        self._timer: loop.Timer | None = events.after(PATIENCE_S, self._attempt)

    def arrived(self) -> None:
        """An engine said hello."""
        self.quit()
        if self._arrived_s is None:
            self._arrived_s = self._loop.now_s()

    def left(self) -> None:
        """The last engine's connection ended."""
        self.quit()
        if self._arrived_s is not None:
            stable = self._loop.now_s() - self._arrived_s >= STABLE_S
            self._delay_s = FIRST_DELAY_S if stable else min(self._delay_s, UNSTABLE_DELAY_S)
        self._arrived_s = None
        self._wait()

    def quit(self) -> None:
        """Start no engine any more, until `left`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pass_turn()

    def _wait(self) -> None:
        spread = 1.0 + (os.getpid() * 7919 % 1000) / 1000  # neighbours in pid are far apart in time
        self._timer = self._loop.after(self._delay_s * spread, self._attempt)
        self._delay_s = min(self._delay_s * 2, LONGEST_DELAY_S)

    def _attempt(self) -> None:
        self._pass_turn()
        if records.folder_gone():
            # An engine would make an empty state directory, and nobody could ever reach this agent through it.
            self._nothing_left()
            return
        stopped = os.path.exists(f"{self._spec.state_dir}/{places.ENGINE_STOPPED}")
        if not stopped and not self._answers() and self._take_turn():
            self._start()
        self._wait()

    def _answers(self) -> bool:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.setblocking(False)
        try:
            listener.connect(stream, f"{self._spec.state_dir}/{places.ENGINE_SOCKET}")
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            stream.close()
        return True

    def _take_turn(self) -> bool:
        try:
            turn = os.open(f"{self._spec.state_dir}/{places.ENGINE_WAKING}", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return True  # a full or read-only disk: better a crowd of engines than none
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(turn)
            return False
        self._turn = turn
        return True

    def _pass_turn(self) -> None:
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None

    def _start(self) -> None:
        self._note("the engine is gone: starting " + self._spec.engine_command[0])
        try:
            start_detached(self._spec)
        except OSError as error:
            self._note(f"the engine could not be started: {error}")


def start_detached(spec: specification.Specification) -> None:
    """Start the engine as a process that is no descendant of ours: the agent's end must not be its end.

    Raises:
        OSError: no processes left.
    """
    # Until it has handlers of its own, a signal to the newcomer would be written into our pipe.
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = system.fork_sibling()
        if pid == 0:
            _become_engine(spec)
        if pid is None:
            _start_orphan(spec)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def _start_orphan(spec: specification.Specification) -> None:
    # For a moment orphans of the agent, too, go to init: the price where clone(2) is not at hand.
    was_subreaper = system.become_subreaper(False)
    try:
        pid = os.fork()
        if not pid:
            _leave_behind(spec)
        os.waitpid(pid, 0)
    finally:
        if was_subreaper:
            system.become_subreaper(True)


def _leave_behind(spec: specification.Specification) -> None:
    try:
        if not os.fork():
            _become_engine(spec)
    finally:
        os._exit(0)


def _become_engine(spec: specification.Specification) -> None:
    try:
        os.setsid()
        log = os.open(f"{spec.state_dir}/{places.ENGINE_LOG}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for place, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
            os.dup2(descriptor, place)
        spawn.close_all_but((0, 1, 2))
        os.chdir("/")
        spawn.reset_signals()
        os.execve(spec.engine_command[0], spec.engine_command, spec.engine_env)
    except BaseException as error:
        os.write(2, f"keeper: the engine {spec.engine_command[:1]} could not be started: {error}\n".encode())
    finally:
        os._exit(127)
