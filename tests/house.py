"""A real engine in a state directory of its own, with everything that it starts, and nothing of it left behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kt_client.errors import EngineAway, KtError
from kt_client.link import Link
from kt_ledger import process_identity
from kt_ledger.layout import StateLayout
from kt_manifest.contract import kinds
from kt_supervisor.keeper import proctree

DEADLINE_S = 40.0


def until(claim: Callable[[], Any], what: str | Callable[[], str], *, within_s: float = DEADLINE_S) -> Any:
    """Return the first true answer of `claim`; a `what` that is a function tells how it is at the end."""
    ends_s = time.monotonic() + within_s
    while not (answer := claim()):
        assert time.monotonic() < ends_s, f"not within {within_s:g} s: {what() if callable(what) else what}"
        threading.Event().wait(0.02)
    return answer


class House:
    """One state directory: its engine, its agents, and the questions that a command would ask."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = StateLayout(root)
        self.link = Link(self.files.engine_socket)
        self.children: list[subprocess.Popen[bytes]] = []
        self.variables: dict[str, str] = {}

    until = staticmethod(until)

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start an engine process and wait for nothing."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.files.engine_log.touch(mode=0o600)
        with self.files.engine_log.open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "kt_supervisor.engine", "--state-dir", str(self.root)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self.variables,
                start_new_session=True,
            )
        self.children.append(child)
        return child

    def boot(self) -> "House":
        """Start an engine and wait until it answers."""
        self.spawn()
        self.wait_for_engine()
        return self

    def wait_for_engine(self) -> None:
        until(self.answers, lambda: f"an engine answers; {self.evidence()}")

    def answers(self) -> bool:
        try:
            self.link.ask("GET", "/v1/engine")
        except (EngineAway, KtError):
            return False
        return True

    def evidence(self) -> str:
        """Return what explains an answer that never came: the log's end, and who is there."""
        there = [f"{process.pid} {process.state}" for process in self.processes()]
        return f"it answers: {self.answers()}; processes: {there}; its log: {self.log()[-3000:]}"

    def log(self) -> str:
        return self.files.engine_log.read_text() if self.files.engine_log.exists() else ""

    def ask(self, method: str, target: str, body: Any = None) -> Any:
        return self.link.ask(method, target, body=body, timeout_s=DEADLINE_S)

    def ask_patiently(self, method: str, target: str) -> Any:
        """Ask an engine that may be killed and come back meanwhile; for reading only."""

        def once() -> Any:
            try:
                return self.ask(method, target)
            except (EngineAway, KtError):
                return None

        return until(once, lambda: f"{method} {target} is answered; {self.evidence()}")

    def refusal(self, method: str, target: str, body: Any = None) -> KtError:
        with pytest.raises(KtError) as refused:
            self.ask(method, target, body)
        return refused.value

    def register(self, name: str, code: str, *words: str, observe: bool = False, **declared: Any) -> Any:
        """Register an agent that runs this Python code."""
        argv = (sys.executable, "-u", "-c", code, *words)
        return self.register_command(name, *argv, observe=observe, **declared)

    def register_command(self, name: str, *argv: str, observe: bool = False, **declared: Any) -> Any:
        """Register an agent by its command line; `declared` is what else its adapter says."""
        adapter = replace(kinds.command(argv, interactive=False, observe=observe), **declared)
        return self.ask("POST", "/v1/agents", {"name": name, "adapter": adapter.to_json()})

    def start(self, name: str, **variables: str) -> Any:
        env = {"PATH": os.environ["PATH"], **variables}
        return self.ask("POST", f"/v1/agents/{name}/start", {"env": env})

    def stop(self, name: str, *, timeout_s: float = 10.0) -> Any:
        return self.ask("POST", f"/v1/agents/{name}/stop", {"timeout_s": timeout_s})

    def entry(self, name: str) -> Any:
        return self.ask_patiently("GET", f"/v1/agents/{name}")["instance"]

    def set(self, name: str, key: str, value: str, **variables: str) -> Any:
        return self.ask("PUT", f"/v1/agents/{name}/config", {"key": key, "value": value, "env": variables})

    def wait_for_state(self, name: str, *states: str) -> Any:
        def there() -> Any:
            found = self.entry(name)
            return found if found["state"] in states else None

        return until(there, lambda: f"{name} is {' or '.join(states)}; {self.evidence()}")

    def said(self, name: str) -> list[Any]:
        def once() -> Any:
            try:
                return (list(self.link.lines(f"/v1/agents/{name}/logs?follow=0", timeout_s=DEADLINE_S)),)
            except (EngineAway, KtError):
                return None

        return list(until(once, lambda: f"the logs of {name} are read; {self.evidence()}")[0])

    def engine_pid(self) -> int:
        return int(self.ask_patiently("GET", "/v1/engine")["pid"])

    def stop_engine(self) -> None:
        """Stop the engine alone; return once it is gone."""
        pid = self.engine_pid()
        self.ask("POST", "/v1/engine/stop", {"all": False})
        until(lambda: self.is_gone(pid), "the engine has ended")
        self.reap()

    def end_gateway(self) -> None:
        """Kill -9 the gateway; return once it is gone."""
        self.kill(int(json.loads(self.files.gateway.record.read_bytes())["pid"]))

    def kill_engine(self) -> int:
        """Kill -9 the engine that answers now; return once it is gone."""
        pid = self.engine_pid()
        self.kill(pid)
        return pid

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        until(lambda: self.is_gone(pid), f"process {pid} is gone")
        self.reap()

    @staticmethod
    def is_gone(pid: int) -> bool:
        process = proctree.read(pid)
        return process is None or not process.alive()

    def reap(self) -> None:
        for child in self.children:
            child.poll()

    def run_record(self, run_id: str) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self.files.run(run_id).record.read_bytes())
        return record

    def stop_everything(self) -> int:
        """Stop engine, agents and gateway; return how many processes are left."""
        if not self.answers() and not self.processes():
            return 0
        if not self.answers():
            self.boot()
        try:
            self.ask("POST", "/v1/engine/stop", {"all": True})
            until(lambda: self.reap() or not self.processes(), "nothing is left", within_s=15)
        except (AssertionError, EngineAway, KtError) as error:
            left = self.processes()
            print("left:", [(process.pid, process.state, command_of(process.pid)) for process in left], error)
            return len(left)
        return 0

    # -- the end -----------------------------------------------------------------------------------------------
    def end(self) -> None:
        """Stop everything; whatever does not stop is killed, and nothing may be left."""
        try:
            self.link.ask("POST", "/v1/engine/stop", body={"all": True}, timeout_s=30.0)
        except (EngineAway, KtError):
            if self.root.is_dir():
                self.files.engine_stopped.write_text("the test is over")
        self._kill_what_is_left()
        for child in self.children:
            child.wait(DEADLINE_S)
        assert [] == self.processes()

    def _kill_what_is_left(self) -> None:
        ends_s = time.monotonic() + 5.0
        while left := self.processes():
            if time.monotonic() > ends_s:
                for process in left:
                    proctree.send(process, signal.SIGKILL)
            self.reap()
            threading.Event().wait(0.05)

    def processes(self) -> list[proctree.Process]:
        """Our processes and the agents of this state directory."""
        runs = list(self.files.runs.iterdir()) if self.files.runs.is_dir() else []
        marks = [f"KT_RUN={run.name}".encode() for run in runs]
        wanted = str(self.root).encode()
        found = [process for run in runs if (process := keeper_of(run))]
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal() or int(folder.name) == os.getpid():
                continue
            try:
                command = (folder / "cmdline").read_bytes()
                environ = (folder / "environ").read_bytes() if wanted not in command else b""
            except OSError:
                continue  # gone, or a keeper, which hides: its record names it
            ours = wanted in command or any(mark in environ for mark in marks)
            process = proctree.read(int(folder.name)) if ours else None
            if process and process.alive():
                found.append(process)
        return found


def command_of(pid: int) -> str:
    """Return how a process was started, where that is ours to see."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[-200:]
    except OSError:
        return "?"


def keeper_of(run: Path) -> proctree.Process | None:
    """Return the keeper of a Run, where exactly that process lives."""
    try:
        record = json.loads((run / "run.json").read_bytes())
    except (OSError, ValueError):
        return None
    if record["boot_id"] != process_identity.boot_id():
        return None
    process = proctree.read(record["keeper_pid"])
    same = process is not None and process.start_ticks == record["keeper_start_ticks"] and process.alive()
    return process if same else None
