"""The demo's three agents, and the engine that runs them, through the same control API as every verb."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_cli import environment
from kt_cli.demo import place
from kt_client import ignition
from kt_client.errors import EngineAway
from kt_client.link import Link
from kt_ledger.layout import StateLayout
from kt_manifest.contract import kinds, manifest

DONE = "waiting for work"
"""What an agent of the demo prints when it has done all that it is there to show."""
ENDED = frozenset({"stopped", "failed"})
UPSTREAM_KEY = "metering.upstream_base_url"
MANY = 1000
"""More exchanges than the demo makes."""

BOTH_MANIFEST = """\
contract_version = "1.0.0"

[adapter]
kind = "counts-itself"

[lifecycle.start]
exec = {python}
args = {arguments}

[capabilities.pause]
linux = "guaranteed"
macos = "guaranteed"

[metering]
source = "self-reported"

[config."metering.base_url"]
env = "OPENAI_BASE_URL"
"""


@dataclass(frozen=True, slots=True)
class Member:
    """One agent of the demo: how it is registered, and what it is there to show."""

    name: str
    shows: str
    adapter: str
    upstream: bool


def members(folder: Path) -> list[Member]:
    """Return the three agents; `folder` takes the manifest of the one that has one."""
    models = ["story@1+stream", "answer@2", "squeezed@3", "cut@4+stream", "story@5+stream"]
    opaque = kinds.command(
        [sys.executable, str(place.AGENTS / "opaque.py"), *(f"demo/{model}" for model in models)],
        interactive=False,
        observe=True,
    )
    reporter = kinds.command(
        [sys.executable, str(place.AGENTS / "reporter.py")], interactive=False, observe=False
    )
    return [
        Member("opaque", "knows nothing of us", opaque.to_json(), True),
        Member("reporter", "counts for itself", reporter.to_json(), False),
        Member("both", "does both", _both(folder).to_json(), True),
    ]


def _both(folder: Path) -> Any:
    models = ["demo/answer@6", "demo/answer@7", "demo/answer@8"]
    text = BOTH_MANIFEST.format(
        # JSON strings are TOML basic strings, for every path that a system can have.
        python=json.dumps(sys.executable),
        arguments=json.dumps([str(place.AGENTS / "both.py"), *models]),
    )
    path = folder / "adapter.toml"
    path.write_text(text)
    return manifest.load(path)


class Fleet:
    """The demo's engine, from its start to the end of everything that it started."""

    def __init__(self, layout: StateLayout) -> None:
        self._layout = layout
        self._link = Link(layout.engine_socket)

    def begin(self) -> None:
        """Have the engine answer."""
        ignition.ensure(self._layout)

    def register(self, member: Member, *, upstream: str) -> None:
        """Register one agent, and say where its provider is."""
        self._link.ask("POST", "/v1/agents", body={"name": member.name, "adapter": member.adapter})
        if member.upstream:
            body = {"key": UPSTREAM_KEY, "value": upstream, "env": {}}
            self._link.ask("PUT", f"/v1/agents/{member.name}/config", body=body)

    def start(self, name: str) -> None:
        """Start one agent with the environment of this command."""
        self._link.ask("POST", f"/v1/agents/{name}/start", body={"env": environment.caller()})

    def is_done(self, name: str) -> bool:
        """Return whether an agent has said that its work is done."""
        return any(line["text"] == DONE for line in self._link.lines(f"/v1/agents/{name}/logs?follow=0"))

    def stop(self, name: str) -> None:
        """Stop one agent."""
        self._link.ask("POST", f"/v1/agents/{name}/stop", body={"timeout_s": 5})

    def findings(self, name: str) -> dict[str, int]:
        """Return how many findings of each kind there are about one agent (a replayed line, a malformed one)."""
        instance = self._link.ask("GET", f"/v1/agents/{name}")["instance"]
        counts: dict[str, int] = instance.get("notes", {}).get("counts", {})
        return counts

    def entries(self) -> list[dict[str, Any]]:
        """Return the instances, as `list --json` has them."""
        instances: list[dict[str, Any]] = self._link.ask("GET", "/v1/agents")["instances"]
        return instances

    def fleet(self) -> dict[str, Any]:
        """Return the whole document of `list --json`."""
        document: dict[str, Any] = self._link.ask("GET", "/v1/agents")
        return document

    def exchanges(self, name: str) -> list[dict[str, Any]]:
        """Return the calls of one agent that the gateway saw."""
        answer = self._link.ask("GET", f"/v1/agents/{name}/exchanges?limit={MANY}")
        found: list[dict[str, Any]] = answer["exchanges"] if isinstance(answer, dict) else answer
        return found

    def end(self, *, timeout_s: float = 60.0) -> None:
        """Stop agents, gateway and engine; nothing to stop is no error."""
        try:
            ignition.stop(self._layout, everything=True, timeout_s=timeout_s)
        except EngineAway:
            return
