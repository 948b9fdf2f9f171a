"""What every verb needs: the engine of this state directory, started when there is something to ask it about.

A state directory that was never used holds no agent. Reading it therefore starts and makes nothing: the fleet is empty
and every name is unknown (`docs/decisions/0070`).
"""

import socket
from collections.abc import Iterator, Mapping
from typing import Any

from kt_cli import environment, exit_codes
from kt_cli.failure import Failure
from kt_cli.link import ANSWER_TIMEOUT_S, ENGINE_LOST, EngineAway, Link
from kt_ledger.layout import StateLayout

ATTACH = "kt-attach"
"""The protocol that `attach` upgrades to."""


def is_unused(layout: StateLayout) -> bool:
    """Return whether no engine ever ran here: neither a ledger nor a socket."""
    return not layout.database.exists() and not layout.engine_socket.exists()


def ask(method: str, target: str, *, body: Any = None, timeout_s: float | None = ANSWER_TIMEOUT_S) -> Any:
    """Return the engine's answer, starting the engine where it is away (`Link.ask` has the errors).

    A question that changes nothing is asked again where the engine died over it.
    """
    layout = environment.state()
    link = Link(layout.engine_socket)
    try:
        return link.ask(method, target, body=body, timeout_s=timeout_s)
    except EngineAway:
        ignite(layout)
    except Failure as failure:
        if method != "GET" or failure.code != ENGINE_LOST:
            raise
        ignite(layout)
    return link.ask(method, target, body=body, timeout_s=timeout_s)


def ask_about(
    name: str, method: str, target: str = "", *, body: Any = None, timeout_s: float | None = ANSWER_TIMEOUT_S
) -> Any:
    """Return the engine's answer about one agent; `target` is what follows its name.

    Raises:
        Failure: exit 3 in a state directory that was never used; else as `ask`.
        NameInvalid: exit 2, where no agent can have this name.
    """
    _check_known(name)
    return ask(method, f"/v1/agents/{name}{target}", body=body, timeout_s=timeout_s)


def lines_about(name: str, target: str, *, reader: int | None = None) -> Iterator[Any]:
    """Yield the lines of an NDJSON answer about one agent; errors as `ask_about`, and as `Link.lines`."""
    _check_known(name)
    layout = environment.state()
    link = Link(layout.engine_socket)
    if not link.answers():
        ignite(layout)
    yield from link.lines(f"/v1/agents/{name}{target}", reader=reader)


def upgrade_about(name: str, target: str) -> tuple[socket.socket, Mapping[str, str], bytes]:
    """Return a raw stream about one agent (`Link.upgrade`); errors as `ask_about`."""
    _check_known(name)
    layout = environment.state()
    link = Link(layout.engine_socket)
    if not link.answers():
        ignite(layout)
    return link.upgrade(f"/v1/agents/{name}{target}", protocol=ATTACH)


def ask_present(method: str, target: str) -> Any:
    """Return the answer of an engine that is there (`Link.ask`); starts none."""
    return Link(environment.state().engine_socket).ask(method, target)


def _check_known(name: str) -> None:
    from kt_manifest import names

    names.check(name)
    layout = environment.state()
    if is_unused(layout):
        raise Failure(
            f"no agent named {name!r}: got a state directory that was never used ({layout.root}), wanted one with "
            f"agents; register it with `kt agent register {name} ...`, or set {environment.STATE_DIR}",
            exit_code=exit_codes.NOT_FOUND,
            code="not_found",
        )


def ignite(layout: StateLayout) -> None:
    """Have an engine that answers (`ignition.ensure`)."""
    from kt_cli import (
        ignition,
    )  # brings subprocess: not on the path of a command that finds its engine running

    ignition.ensure(layout)
