"""`kt engine`: the process behind all commands."""

import os
from typing import Any

import click

from kt_cli import environment, output, session, table, terminal
from kt_client import ignition, support, upgrading
from kt_client.errors import EngineAway

UNTOLD = frozenset({"schema_version", "running"})
"""What the JSON says and the text need not."""


@click.command()
def run() -> None:
    """Run the engine in the foreground, for a service manager or to watch it.

    \b
    Example:
      kt engine run
    """
    support.check()
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
    answer = session.client().engine_start()
    if as_json:
        output.document(answer)
        return
    word = "started" if answer["started"] else "already running"
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
    client = session.client()
    try:
        answer = client.engine_stop(everything=everything)
    except EngineAway:
        _tell_absent(client.engine_status(), as_json)
        return
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result("Engine stopped, with all agents and the gateway." if everything else "Engine stopped.")
    if not everything:
        output.note("Agents that run go on; any command that needs the engine starts it again.")


@click.command()
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, max=86_400),
    default=upgrading.HANDOVER_TIMEOUT_S,
    show_default=True,
    metavar="SECS",
    help="How long the old engine may take to finish what is under way.",
)
@output.json_option
def upgrade(*, timeout_s: float, as_json: bool) -> None:
    """Replace the engine that runs by this kt's own. No agent notices.

    A gateway of another version is followed by a new one; answers under way
    go on, and no call is refused.

    \b
    Example:
      kt engine upgrade
    """
    answer = session.client().engine_upgrade(timeout_s=timeout_s)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    now, old = answer["engine"], answer["replaced"]
    if old is None:
        output.result(f"Engine started (pid {now['pid']}, version {now['version']}): none ran.")
        return
    output.result(
        f"Engine replaced: version {old['version']} (pid {old['pid']}) by {now['version']} (pid {now['pid']})."
    )


@click.command()
@output.json_option
def status(*, as_json: bool) -> None:
    """Say whether the engine runs. Starts nothing.

    \b
    Example:
      kt engine status --json
    """
    known = {"schema_version": 1, "running": True, "state_dir": str(environment.state().root)}
    answer = {**known, **session.client().engine_status()}
    if not answer["running"]:
        _tell_absent(answer, as_json)
        return
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    rows = [
        (_title(key), str(value)) for key, value in answer.items() if key not in UNTOLD and _is_plain(value)
    ]
    output.result("Engine running")
    output.result(table.fields(rows, width=terminal.width()))


def _tell_absent(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.document(answer)
        return
    output.result("Engine not running.")
    output.result(f"State directory: {terminal.visible(str(answer['state_dir']))}")


def _is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list)


def _title(key: str) -> str:
    return key.replace("_dir", "_directory").replace("_", " ").capitalize()
