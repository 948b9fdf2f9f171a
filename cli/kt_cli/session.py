"""What every verb needs: a client of this state directory's engine, which starts it where there is something to ask.

The rules are the library's (`kt_client.asking`); this room adds that a name which no agent can have is refused first.
"""

import socket
from collections.abc import Iterator, Mapping
from typing import Any

from kt_cli import environment, output
from kt_cli.link import ANSWER_TIMEOUT_S, Link
from kt_client import asking, ignition, place
from kt_client.blocking import Client
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


def ask(method: str, target: str, *, body: Any = None, timeout_s: float | None = ANSWER_TIMEOUT_S) -> Any:
    """Return the engine's answer to a call that the library has no verb for, starting the engine where it is away."""
    return client().perform(Request(method=method, target=target, body=body, timeout_s=timeout_s))


def ask_about(
    name: str, method: str, target: str = "", *, body: Any = None, timeout_s: float | None = ANSWER_TIMEOUT_S
) -> Any:
    """Return the engine's answer about one agent; `target` is what follows its name.

    Raises:
        NotFound: exit 3 in a state directory that was never used; else as the library's verbs.
        NameInvalid: exit 2, where no agent can have this name.
    """
    path = f"/v1/agents/{name}{target}"
    request = Request(method=method, target=path, body=body, timeout_s=timeout_s, about=name)
    return client_for(name).perform(request)


def lines(target: str) -> Iterator[Any]:
    """Yield the lines of an NDJSON answer, from an engine that is started where it is away."""
    return client().lines(Request(method="GET", target=target, timeout_s=None))


def lines_about(name: str, target: str, *, reader: int | None = None) -> Iterator[Any]:
    """Yield the lines of an NDJSON answer about one agent; errors as `ask_about`, and as `Link.stream`."""
    request = Request(method="GET", target=f"/v1/agents/{name}{target}", timeout_s=None, about=name)
    return client_for(name).lines(request, reader=reader)


def upgrade_about(name: str, target: str) -> tuple[socket.socket, Mapping[str, str], bytes]:
    """Return a raw stream about one agent (`Link.upgrade`); errors as `ask_about`."""
    one = client_for(name)
    asking.without_engine(Request(method="GET", target=target, about=name), one.files)
    link = Link(one.files.engine_socket)
    if not link.answers():
        ignite(one.files)
    return link.upgrade(f"/v1/agents/{name}{target}", protocol=ATTACH)


def ask_present(method: str, target: str) -> Any:
    """Return the answer of an engine that is there (`Link.ask`); starts none."""
    return Link(environment.state().engine_socket).ask(method, target)


def ignite(layout: StateLayout) -> None:
    """Have an engine that answers (`ignition.ensure`)."""
    ignition.ensure(layout)
