"""`kt doctor`: what may stand in the way of agents on this machine."""

import getpass
from typing import Any

import click

from kt_cli import environment, output, session, table, terminal
from kt_client import support
from kt_client.blocking import Client
from kt_client.errors import EngineAway
from kt_ledger import exit_codes

COLOURS = {"ok": "green", "warn": "yellow", "bad": "red"}


@click.command()
@click.option("--offline", is_flag=True, help="Do not ask the engine, even where one runs.")
@output.json_option
def doctor(*, offline: bool, as_json: bool) -> int:
    """Look for what may stand in the way of agents here. Changes nothing.

    Each check is ok, warn (something holds less than it could) or bad. The
    exit code is 1 where anything is bad. Starts no engine.

    \b
    Examples:
      kt doctor
      kt doctor --json
    """
    support.check()
    found = _offline() if offline else _found()
    if as_json:
        output.document(found)
    else:
        _tell(found)
    return exit_codes.FAILED if found["worst"] == "bad" else exit_codes.DONE


def _found() -> dict[str, Any]:
    files = environment.state()
    client = Client(files.root, start_engine=False, hears_version=session.remark)
    try:
        answer: dict[str, Any] = client.doctor()
    except EngineAway:
        return _offline()
    return answer


def _offline() -> dict[str, Any]:
    from kt_ledger.clock import SystemClock
    from kt_supervisor.doctor import examination, finding

    findings = examination.examine(environment.state(), clock=SystemClock(), user=getpass.getuser())
    return finding.document(findings, engine=False)


def _tell(found: dict[str, Any]) -> None:
    rows = [
        (
            table.Cell(str(one["level"]), COLOURS.get(str(one["level"]), "")),
            str(one["check"]),
            str(one["found"]),
            str(one["do"] or ""),
        )
        for one in found["findings"]
    ]
    output.result(table.render(("", "Check", "Found", "What to do"), rows, width=terminal.width()))
    if not found["engine"]:
        output.note("no engine was asked: ports and keepers are judged better where one runs")
