"""What every verb needs: a client of this state directory's engine, which starts it where there is something to ask.

The rules are the library's (`kt_client.asking`); this room adds that a name which no agent can have is refused first.
"""

import socket
from collections.abc import Iterator, Mapping
from typing import Any

from kt_cli import environment, output
from kt_client import asking, ignition, place
from kt_client.blocking import Client
from kt_client.link import Link
from kt_client.wire import Request
from kt_ledger.layout import StateLayout
from kt_ledger.version import VERSION

ATTACH = "kt-attach"
"""The protocol that `attach` upgrades to."""


def is_unused(layout: StateLayout) -> bool:
    """Return whether no engine ever ran here: neither a ledger nor a socket."""
    return place.is_unused(layout)


def client() -> Client:
    """Return a client of this command's state directory; it says once where the engine is of another version."""
    return Client(environment.state().root, hears_version=remark)


def remark(version: str) -> None:
    """Say once on standard error where the engine that answered is of another version, with the remedy."""
    if version == VERSION or version in _remarked:
        return
    from kt_client import upgrading

    _remarked.add(version)
    output.note(f"kt: {upgrading.hint(version)}")


_remarked: set[str] = set()


def client_for(name: str) -> Client:
    """Return a client to ask about one agent. Raises NameInvalid, exit 2, where no agent can have this name."""
    from kt_manifest.contract import names

    names.check(name)
    return client()


def client_about(name: str | None) -> Client:
    """Return a client to ask about one agent, or, with None, about all of them; raises as `client_for`."""
    return client() if name is None else client_for(name)


def lines(target: str) -> Iterator[Any]:
    """Yield the lines of an NDJSON answer, from an engine that is started where it is away."""
    return client().lines(Request(method="GET", target=target, timeout_s=None))


def lines_about(name: str, target: str, *, reader: int | None = None) -> Iterator[Any]:
    """Yield the lines of an NDJSON answer about one agent; errors as the library's verbs, and as `Link.stream`."""
    request = Request(method="GET", target=f"/v1/agents/{name}{target}", timeout_s=None, about=name)
    return client_for(name).lines(request, reader=reader)


def upgrade_about(name: str, target: str) -> tuple[socket.socket, Mapping[str, str], bytes]:
    """Return a raw stream about one agent (`Link.upgrade`); errors as the library's verbs."""
    one = client_for(name)
    asking.without_engine(Request(method="GET", target=target, about=name), one.files)
    link = Link(one.files.engine_socket)
    if not link.answers():
        ignite(one.files)
    return link.upgrade(f"/v1/agents/{name}{target}", protocol=ATTACH)


def state_of(name: str) -> str:
    """Return the state of an agent, from an engine that is there; starts none. Raises EngineAway, KtError."""
    present = Client(environment.state().root, start_engine=False)
    return str(present.show(name)["instance"]["state"])


def ignite(layout: StateLayout) -> None:
    """Have an engine that answers (`ignition.ensure`)."""
    ignition.ensure(layout)
