"""`kt agent pause` and `resume`: hold an agent's calls and freeze it, and let it go on."""

from typing import Any

import click

from kt_cli import completing, output, session


@click.command()
@completing.name_argument
@output.json_option
def pause(name: str, *, as_json: bool) -> None:
    """Hold an agent back: new calls wait at the gateway, and its processes are frozen.

    How much of that can be promised is the adapter's to say (`kt agent show`): "guaranteed" freezes every process,
    "best-effort" only holds the calls, "unsupported" is refused. Answers under way are not cut. Calls that have
    waited for pause.hold_s are refused.

    \b
    Examples:
      kt agent pause bot
      kt agent resume bot
    """
    _say(session.client_for(name).pause(name), as_json=as_json)


@click.command()
@completing.name_argument
@output.json_option
def resume(name: str, *, as_json: bool) -> None:
    """Let a paused agent go on, and the calls that wait with it.

    \b
    Example:
      kt agent resume bot
    """
    _say(session.client_for(name).resume(name), as_json=as_json)


def _say(answer: dict[str, Any], *, as_json: bool) -> None:
    output.notices(answer)
    if as_json:
        output.document(answer)
    else:
        output.result(str(answer.get("state")))
