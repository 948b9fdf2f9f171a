"""`kt engine`: the process behind all commands."""

import os
from typing import Any

import click

from kt_cli import environment, ignition, output, table, terminal
from kt_cli.link import EngineAway, Link
from kt_ledger.layout import StateLayout

STOP_TIMEOUT_S = 180.0
NOT_RUNNING: dict[str, Any] = {"schema_version": 1, "running": False}
"""What `engine status --json` says, besides the state directory, where there is no engine."""

UNTOLD = frozenset({"schema_version", "running"})
"""What the JSON says and the text need not."""


@click.command()
def run() -> None:
    """Run the engine in the foreground, for a service manager or to watch it.

    \b
    Example:
      kt engine run
    """
    layout = environment.state()
    ignition.make_state_dir(layout.root)
    command = ignition.command(layout)
    os.execv(command[0], command)


@click.command()
@output.json_option
def start(*, as_json: bool) -> None:
    """Start the engine in the background, where none runs yet.

    \b
    Example:
      kt engine start
    """
    layout = environment.state()
    started = ignition.ensure(layout)
    answer = {"schema_version": 1, **Link(layout.engine_socket).ask("GET", "/v1/engine"), "running": True}
    if as_json:
        output.document({**answer, "started": started})
        return
    word = "started" if started else "already running"
    output.result(f"Engine {word} (pid {answer['pid']}).")


@click.command()
@click.option("--all", "everything", is_flag=True, help="Stop all agents and the gateway as well.")
@output.json_option
def stop(*, everything: bool, as_json: bool) -> None:
    """Stop the engine. Agents and gateway go on, and are taken over by the next engine.

    \b
    Examples:
      kt engine stop
      kt engine stop --all
    """
    layout = environment.state()
    try:
        answer = ignition.extinguish(layout, everything=everything, timeout_s=STOP_TIMEOUT_S)
    except EngineAway:
        _not_running(layout, as_json)
        return
    output.notices(answer)
    if as_json:
        output.document({"schema_version": 1, **answer, "running": False})
        return
    output.result("Engine stopped, with all agents and the gateway." if everything else "Engine stopped.")
    if not everything:
        output.note("Agents that run go on; any command that needs the engine starts it again.")


@click.command()
@output.json_option
def status(*, as_json: bool) -> None:
    """Say whether the engine runs. Starts nothing.

    \b
    Example:
      kt engine status --json
    """
    layout = environment.state()
    try:
        answer = Link(layout.engine_socket).ask("GET", "/v1/engine")
    except EngineAway:
        _not_running(layout, as_json)
        return
    output.notices(answer)
    if as_json:
        output.document({"schema_version": 1, "running": True, "state_dir": str(layout.root), **answer})
        return
    facts = {"state_dir": str(layout.root), **answer}
    rows = [
        (_title(key), str(value)) for key, value in facts.items() if key not in UNTOLD and _is_plain(value)
    ]
    output.result("Engine running")
    output.result(table.fields(rows, width=terminal.width()))


def _not_running(layout: StateLayout, as_json: bool) -> None:
    if as_json:
        output.document({**NOT_RUNNING, "state_dir": str(layout.root)})
        return
    output.result("Engine not running.")
    output.result(f"State directory: {terminal.visible(str(layout.root))}")


def _is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list)


def _title(key: str) -> str:
    return key.replace("_dir", "_directory").replace("_", " ").capitalize()
