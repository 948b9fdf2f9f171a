"""`kt agent restart`: stop, where it runs, then start."""

import click

from kt_cli import environment, output, session
from kt_cli.commands import stop as stopping
from kt_cli.commands.start import START_TIMEOUT_S


@click.command()
@click.argument("name")
@stopping.timeout_option
@output.json_option
def restart(name: str, *, timeout_s: float, as_json: bool) -> None:
    """Stop an agent where it runs, then start it with the environment of this shell.

    What the start needs is looked at first: where that is missing, nothing is stopped.

    \b
    Examples:
      kt agent restart bot
      kt agent restart bot --timeout 5
    """
    body = {"env": environment.caller(), "timeout_s": timeout_s}
    patience_s = timeout_s + stopping.GRACE_S + START_TIMEOUT_S
    answer = session.ask_about(name, "POST", "/restart", body=body, timeout_s=patience_s)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"Restarted {name}.")
    output.result(str(answer.get("state", "running")))
