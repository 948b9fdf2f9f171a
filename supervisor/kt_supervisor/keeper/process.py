"""The keeper as a process: takes its place (session, folder, lock, socket), then serves one Life and the engine."""

import os
import sys
from collections.abc import Callable

from kt_supervisor.keeper import (
    PROTOCOL,
    arrival,
    control,
    freeze,
    life,
    loop,
    places,
    records,
    requests,
    signals,
    specification,
    stdin,
    takeover,
    waking,
)

OUTPUT_EVERY_S = 0.02
LINGER_S = 5.0
REFUSED, TAKEN = 2, 3

Record = dict[str, object]


class Keeper:
    """Answers the control socket, tells engines what happens, and decides when to leave."""

    def __init__(
        self, spec: specification.Specification, *, lock: int, umask: int, notes: records.Notes
    ) -> None:
        self._loop = loop.Loop(failed=lambda error: notes.add(records.described(error)))
        self._spec = spec
        self._engines: set[control.Connection] = set()
        self._output_timer: loop.Timer | None = None
        self._output_due = False
        self._leave_timer: loop.Timer | None = None
        self._leaving = False
        self._operations: dict[str, Callable[[control.Connection, Record], None]] = {
            "status": lambda connection, _: connection.send(self._status()),
            "hello": self._hello,
            "stop": self._stop,
            "pause": self._pause,
            "resume": self._resume,
            "run": self._run_command,
            "eof": self._eof,
            "lend": self._lend,
            "room": self._room,
            "spares": self._spares,
            "release": self._release,
        }
        self._life = life.Life(self._loop, spec, lock=lock, umask=umask, notes=notes, announce=self._announce)
        signals.watch(
            self._loop,
            asked_to_stop=lambda: self._life.stop(life.DEFAULT_WINDOW_S),
            children=self._life.children_changed,
        )
        if spec.room is not None:
            self._life.output.allow(dict.fromkeys(("out", "err"), spec.room))
            self._loop.after(waking.PATIENCE_S, self._lift)
        self._server = control.Server(self._loop, places.SOCKET, handle=self._handle, closed=self._closed)
        self._waking = waking.Waking(
            self._loop, spec, note=notes.add, nothing_left=lambda: self._life.stop(life.DEFAULT_WINDOW_S)
        )

    def run(self) -> None:
        """Live the Run to its end and until it may be forgotten."""
        self._life.begin()
        self._loop.run()

    def _handle(self, connection: control.Connection, request: Record) -> None:
        operation = self._operations.get(str(request["op"]))
        if operation is None:
            wanted = ", ".join(self._operations)
            connection.send({"ok": False, "error": f"op: got {request['op']!r}, wanted one of {wanted}"})
            return
        try:
            operation(connection, request)
        except (requests.RequestInvalid, freeze.NotFrozen) as error:
            connection.send({"ok": False, "error": str(error)})

    def _status(self) -> Record:
        status: Record = {
            "ok": True,
            "protocol": PROTOCOL,
            "run_id": self._spec.run_id,
            "instance_id": self._spec.instance_id,
            "keeper_pid": os.getpid(),
            "agent_pid": self._life.agent_pid,
            "phase": self._life.phase,
            "paused": freeze.OPERATOR in self._life.freezer.reasons,
            "disk_low": self._life.floor.low,
            "stdin": self._life.input.state,
        }
        if self._life.exit is not None:
            status["exit"] = self._life.exit
        return status

    def _hello(self, connection: control.Connection, request: Record) -> None:
        if request.get("protocol") != PROTOCOL:
            got = request.get("protocol")
            connection.send({"ok": False, "error": f"protocol: got {got!r}, wanted {PROTOCOL}"})
            return
        self._engines.add(connection)
        self._waking.arrived()
        if self._leave_timer is not None:
            self._leave_timer.cancel()
            self._leave_timer = None
        connection.send(self._status())
        if self._life.exit is not None:
            connection.send({"event": "exited", **self._life.exit})

    def _stop(self, connection: control.Connection, request: Record) -> None:
        timeout_s = requests.timeout_s(request, life.DEFAULT_WINDOW_S)
        command = requests.stop_command(request)
        connection.send({"ok": True})
        self._life.stop(timeout_s, command=command)

    def _pause(self, connection: control.Connection, _request: Record) -> None:
        connection.send({"ok": True, "how": self._life.pause()})

    def _resume(self, connection: control.Connection, _request: Record) -> None:
        self._life.freezer.release(freeze.OPERATOR)
        connection.send({"ok": True})

    def _run_command(self, connection: control.Connection, request: Record) -> None:
        name = requests.command_id(request)
        timeout_s = requests.timeout_s(request, life.DEFAULT_WINDOW_S)
        command = requests.Command(request, where="run")

        def done(told: Record) -> None:
            connection.send({"event": "ran", "id": name, **told})
            if self._leaving:
                self._leave()

        self._life.run(command, timeout_s=timeout_s, done=done)
        connection.send({"ok": True})

    def _eof(self, connection: control.Connection, _request: Record) -> None:
        if self._life.input.state == stdin.NONE:
            raise requests.RequestInvalid("the agent reads /dev/null, wanted an interactive one")
        self._life.input.close()
        connection.send({"ok": True})

    def _lend(self, connection: control.Connection, request: Record) -> None:
        kept = self._life.lending.kept
        if kept is None or request.get("instance") != self._spec.instance_id:
            instance = request.get("instance")
            connection.send(
                {"ok": False, "error": f"no listening socket of instance {instance!r} is kept here"}
            )
            return
        try:
            kept.lend(connection)
        except OSError:
            connection.close()

    def _room(self, connection: control.Connection, request: Record) -> None:
        self._life.output.allow(requests.segments(request))
        connection.send({"ok": True})

    def _lift(self) -> None:
        if not self._engines:  # nobody makes room: rather beyond the cap than without a word
            self._life.output.allow({})

    def _spares(self, connection: control.Connection, _request: Record) -> None:
        pipes = self._life.output.pipes()
        try:
            connection.send_descriptors({"ok": True, "streams": list(pipes)}, list(pipes.values()))
        except OSError:
            connection.close()

    def _release(self, connection: control.Connection, _request: Record) -> None:
        if self._life.exit is None:
            connection.send(
                {"ok": False, "error": f"the Run is {self._life.phase}, wanted exited; stop it first"}
            )
            return
        connection.send({"ok": True})
        self._leave()

    def _announce(self, event: Record) -> None:
        if event["event"] == "output":
            self._output_due = True
            if self._output_timer is None:
                self._tell_output()
            return
        for engine in tuple(self._engines):
            engine.send(event)
        if event["event"] == "exited":
            self._waking.quit()
            if not self._engines:
                self._leave_soon()

    def _tell_output(self) -> None:
        self._output_timer = None
        if not self._output_due or not self._engines:
            return
        self._output_timer = self._loop.after(OUTPUT_EVERY_S, self._tell_output)
        ready = [engine for engine in self._engines if engine.idle()]
        for engine in ready:
            engine.send({"event": "output"})
        self._output_due = len(ready) < len(self._engines)

    def _closed(self, connection: control.Connection) -> None:
        if self._life.lending.kept is not None:
            self._life.lending.kept.left(connection)
        if connection not in self._engines:
            return
        self._engines.discard(connection)
        if self._engines:
            return
        self._loop.after(waking.PATIENCE_S, self._lift)
        if self._life.exit is not None:
            self._leave()
        else:
            self._waking.left()

    def _leave_soon(self) -> None:
        # The exit is on disk; an engine that is about to say hello finds it there, too.
        self._leave_timer = self._loop.after(LINGER_S, self._leave)

    def _leave(self) -> None:
        self._leaving = True  # once the last command is over: each has its own time limit
        if not self._life.commands.running():
            self._loop.stop()


def main() -> int:
    """Run a keeper by the specification on standard input; return its exit status.

    0 after the Run's end, 2 where the specification or the folder cannot be acted upon, 3 when the Run's lock is taken.
    """
    umask = os.umask(0o077)
    data = sys.stdin.buffer.read()
    try:
        spec = specification.parse(data)
        os.chdir(places.run_folder(spec.state_dir, spec.run_id))
        lock = arrival.above(os.open(places.LOCK, os.O_RDWR | os.O_CREAT, 0o600))
        log = arrival.above(records.open_log())
        kept: tuple[int, ...] = (0, 1, 2, lock, log)
        if spec.takeover is not None:
            # The Run's lock is the agent's for as long as it lives; keepers exclude each other by one of their own.
            keepers = arrival.above(os.open(places.KEEPER_LOCK, os.O_RDWR | os.O_CREAT, 0o600))
            taken = not arrival.locked(keepers) or takeover.keeper_lives(takeover.recorded())
            kept += (keepers, *spec.takeover.descriptors())
            arrival.locked(lock)
        else:
            taken = not arrival.locked(lock)
        if taken:
            sys.stderr.write(
                f"keeper: {places.LOCK} of {spec.run_id} is held; the Run has a keeper or a living agent\n"
            )
            return TAKEN
        arrival.take_place(kept)
        keeper = Keeper(spec, lock=lock, umask=umask, notes=records.Notes(log))
    except (specification.SpecificationInvalid, OSError) as error:
        sys.stderr.write(f"keeper: {error}\n")
        return REFUSED
    del data
    arrival.leave_starter(log)
    keeper.run()
    for name in (places.SOCKET, places.STDIN):
        try:
            os.unlink(name)
        except OSError:
            pass
    return 0
