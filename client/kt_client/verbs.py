"""The verbs, declared once for both clients: each builds a `Request` and leaves the asking to its client.

`Document` is what a verb gives: a dict from `Client`, an awaitable of one from `AsyncClient`. `Lines` are an iterator
of dicts, or an asynchronous one. Documents are the engine's own, field by field what `kt ... --json` prints.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kt_client import ignition, place, upgrading, variables
from kt_client.configuration import ConfigurationVerbs
from kt_client.targets import about, quoted
from kt_client.variables import Offer
from kt_client.wire import Request
from kt_ledger.layout import StateLayout

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
REMOVE_TIMEOUT_S = 120.0
ENGINE_STOP_TIMEOUT_S = 180.0
SEND_TIMEOUT_S = 30.0
GRACE_S = 60.0
"""How much longer than the agent's own time to wait for the engine's answer: the forced end and its two scans."""

NOT_RUNNING: dict[str, Any] = {"schema_version": 1, "running": False}
EMPTY_TOTALS: dict[str, Any] = {
    "total_input_tokens": 0,
    "total_output_tokens": 0,
    "dollars_partial": False,
    "unpriced_count": 0,
    "usage_known": "all",
    "unmeasured_calls": 0,
}
EMPTY_USAGE: dict[str, Any] = {"schema_version": 2, "totals": EMPTY_TOTALS}
EMPTY_FLEET: dict[str, Any] = {**EMPTY_USAGE, "instances": []}
"""What is said of a state directory that was never used."""


class Verbs[Document, Lines](ConfigurationVerbs[Document], ABC):
    """What can be asked of the engine of one state directory.

    Every verb but those of the engine itself starts an engine where none runs, unless `start_engine` is False: then it
    raises `EngineAway`. In a state directory that was never used, reading starts and makes nothing.
    """

    def __init__(
        self,
        state_dir: str | os.PathLike[str] | None = None,
        *,
        start_engine: bool = True,
        hears_version: Callable[[str], None] | None = None,
    ) -> None:
        """Choose the state directory.

        Args:
            state_dir: by default the one that `kt` would use (`KTESIO_STATE_DIR`).
            start_engine: whether a verb may start one.
            hears_version: told with each answer which version of the engine gave it.
        """
        self.files: StateLayout = place.layout(state_dir)
        self.start_engine = start_engine
        self.hears_version = hears_version

    # -- agents ------------------------------------------------------------------------------------------------
    def register(
        self,
        name: str,
        *,
        manifest: str | os.PathLike[str] | None = None,
        kind: str | None = None,
        command: Sequence[str] = (),
        observe: bool = False,
        interactive: bool = False,
        adapter: str | None = None,
    ) -> Document:
        """Register an agent: by a manifest, by a built-in kind, or by an adapter that was judged already.

        Args:
            name: its name, free so far.
            manifest: an adapter.toml, or the folder that holds one.
            kind: `mock`, or `command` with a `command`.
            command: program and arguments; a relative program is taken from the working directory.
            observe: with `command`: meter its traffic.
            interactive: with `command`: it reads its standard input.
            adapter: the text of a snapshot (`kt_manifest.contract.snapshot`).
        """
        body: dict[str, Any] = {"name": name}
        if adapter is not None:
            body["adapter"] = adapter
        elif manifest is not None:
            body["manifest"] = str(Path(manifest).absolute())
        else:
            body |= {"kind": kind or "", "command": list(command), "cwd": str(Path.cwd())}
            body |= {"observe": observe, "interactive": interactive}
        return self._ask(Request(method="POST", target="/v1/agents", body=body))

    def list(self) -> Document:
        """Return all agents with their states and usage."""
        return self._ask(Request(method="GET", target="/v1/agents", unused=EMPTY_FLEET))

    def show(self, name: str) -> Document:
        """Return all that is known of one agent."""
        return self._ask(about(name, "GET"))

    def usage_of_removed(self) -> Document:
        """Return what agents used that were removed, the latest first."""
        unused = {**EMPTY_USAGE, "removed": []}
        return self._ask(Request(method="GET", target="/v1/usage?removed=1", unused=unused))

    def usage(self, name: str | None = None) -> Document:
        """Return what one agent, or all of them together, have used."""
        if name is not None:
            return self._ask(about(name, "GET", "/usage"))
        return self._ask(Request(method="GET", target="/v1/usage", unused=EMPTY_USAGE))

    def calls(self, name: str, *, limit: int = 100) -> Document:
        """Return an agent's calls to its model, at most so many, the latest last."""
        return self._ask(about(name, "GET", f"/exchanges?limit={limit}"))

    def start(
        self,
        name: str,
        *,
        env: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Document:
        """Start an agent with what it inherits of this environment (None: this process's own); return when it runs.

        `settings` hold from this start until the next one, restarts included, and win over what is set otherwise.
        """
        body = {"settings": dict(settings)} if settings else {}
        order = about(name, "POST", "/start", body=body, timeout_s=START_TIMEOUT_S)
        return self._offer(variables.offered(order, env, settings=settings))

    def render(self, name: str, *, env: Mapping[str, str] | None = None, reveal: bool = False) -> Document:
        """Return what a start with this environment would run; nothing is started. `reveal`: secrets in the clear."""
        return self._offer(variables.offered(about(name, "POST", "/render", body={"reveal": reveal}), env))

    def stop(self, name: str, *, timeout_s: float = STOP_TIMEOUT_S) -> Document:
        """Stop an agent and everything that it started; after `timeout_s` it is forced."""
        body = {"timeout_s": timeout_s}
        return self._ask(about(name, "POST", "/stop", body=body, timeout_s=timeout_s + GRACE_S))

    def restart(
        self, name: str, *, env: Mapping[str, str] | None = None, timeout_s: float = STOP_TIMEOUT_S
    ) -> Document:
        """Stop an agent where it runs, and start it."""
        patience_s = timeout_s + GRACE_S + START_TIMEOUT_S
        order = about(name, "POST", "/restart", body={"timeout_s": timeout_s}, timeout_s=patience_s)
        return self._offer(variables.offered(order, env, purpose="restart"))

    def pause(self, name: str) -> Document:
        """Freeze an agent, and hold its calls at the gateway."""
        return self._ask(about(name, "POST", "/pause", body={}))

    def resume(self, name: str) -> Document:
        """Let a paused agent go on."""
        return self._ask(about(name, "POST", "/resume", body={}))

    def send(self, name: str, text: str) -> Document:
        """Write text to an agent's standard input, as `kt agent send` does. Raises TimedOut where it is not taken."""
        return self._ask(about(name, "POST", "/send", body={"text": text}, timeout_s=SEND_TIMEOUT_S))

    def eof(self, name: str) -> Document:
        """Close an agent's standard input."""
        return self._ask(about(name, "POST", "/eof", body={}))

    def remove(self, name: str, *, delete: bool = False, force: bool = False) -> Document:
        """Free an agent's name; `delete` its Agent Home as well, `force`: stop it first."""
        query = f"?home={'delete' if delete else 'retain'}&force={int(force)}"
        return self._ask(about(name, "DELETE", query, timeout_s=REMOVE_TIMEOUT_S))

    def logs(
        self,
        name: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        since_ns: int | None = None,
        streams: Sequence[str] = (),
        run: str | None = None,
        after: str | None = None,
    ) -> Lines:
        """Yield what an agent printed, a line at a time.

        Args:
            name: whose.
            follow: go on until the agent has ended.
            tail: at most so many lines of what is there already.
            since_ns: only what was printed from this moment on, in nanoseconds since 1970 UTC.
            streams: "out", "err", "engine"; none for all.
            run: only this Run's.
            after: the `position` of a line: what comes behind it, without a gap and without a repetition.
        """
        query = [("follow", str(int(follow)))] + [("stream", stream) for stream in streams]
        chosen = {"tail": tail, "since_ns": since_ns, "run": run, "after": after}
        query += [(field, str(value)) for field, value in chosen.items() if value is not None]
        target = "/logs?" + "&".join(f"{field}={quoted(value)}" for field, value in query)
        return self._follow(about(name, "GET", target, timeout_s=None))

    def events(self, *, after: int = 0, follow: bool = False, instance: str | None = None) -> Lines:
        """Yield what happened after an event's number, to all agents or to one; `follow`: without end."""
        query = f"?after={after}&follow={int(follow)}"
        query += f"&instance={quoted(instance)}" if instance is not None else ""
        return self._follow(Request(method="GET", target=f"/v1/events{query}", timeout_s=None, unused=()))

    # -- memory ------------------------------------------------------------------------------------------------
    def memory_show(self, name: str) -> Document:
        """Return what memory is attached to an agent."""
        return self._ask(about(name, "GET", "/memory"))

    def memory_attach(self, name: str, kind: str) -> Document:
        """Attach memory, "filesystem" or "native", to an agent that does not run."""
        return self._ask(about(name, "PUT", "/memory", body={"kind": kind}))

    def memory_detach(self, name: str) -> Document:
        """Detach it; its folder stays."""
        return self._ask(about(name, "DELETE", "/memory"))

    # -- secrets -----------------------------------------------------------------------------------------------
    def secrets_changed(self, *names: str) -> Document:
        """Tell the engine that these secrets have other values now, or none.

        `rekeyed` names whose gateway carries another one at once, `keeping` whose calls go on with the old one.
        Starts nothing: where no engine runs, none has a key to replace.
        """
        away = {"schema_version": 1, "rekeyed": [], "keeping": [], "notices": []}
        body = {"names": list(names)}
        return self._ask(Request(method="POST", target="/v1/secrets/changed", body=body, away=away))

    # -- the engine --------------------------------------------------------------------------------------------
    def engine_status(self) -> Document:
        """Return what the engine says of itself; `running` is False where there is none. Starts nothing."""
        away = {**NOT_RUNNING, "state_dir": str(self.files.root)}
        return self._ask(Request(method="GET", target="/v1/engine", away=away))

    def engine_start(self) -> Document:
        """Start an engine where none runs; `started` says whether this call did. Raises EngineUnavailable."""
        return self._work(lambda: ignition.start(self.files))

    def engine_stop(self, *, everything: bool = False, timeout_s: float = ENGINE_STOP_TIMEOUT_S) -> Document:
        """Stop the engine, `everything`: all agents and the gateway as well; return once its process ended."""
        return self._work(lambda: ignition.stop(self.files, everything=everything, timeout_s=timeout_s))

    def engine_upgrade(
        self, *, timeout_s: float = upgrading.HANDOVER_TIMEOUT_S, to_service: bool = False
    ) -> Document:
        """Replace the engine that runs by the one that this code brings, or that a service manager has waiting.

        `timeout_s` is what the old one has to finish what is under way; agents run on.
        """
        return self._work(lambda: upgrading.upgrade(self.files, timeout_s=timeout_s, to_service=to_service))

    def doctor(self) -> Document:
        """Return what the engine finds on this machine; `offline` of the command finds the rest."""
        return self._ask(Request(method="GET", target="/v1/doctor"))

    # -- what a client adds ------------------------------------------------------------------------------------
    @abstractmethod
    def _ask(self, request: Request) -> Document:
        """Ask, and give the document."""

    @abstractmethod
    def _offer(self, offer: Offer) -> Document:
        """Ask which variables are wanted, then ask with these, and give the document."""

    @abstractmethod
    def _follow(self, request: Request) -> Lines:
        """Ask, and give the lines of the answer as they come."""

    @abstractmethod
    def _work(self, work: Callable[[], dict[str, Any]]) -> Document:
        """Do something that blocks, and give what it returns."""
