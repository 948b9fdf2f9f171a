"""`kt agent restart`: stop, where it runs, then start."""

import click

from kt_cli import completing, output, session
from kt_cli.commands import stop as stopping


@click.command()
@completing.name_argument
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
    answer = session.client_for(name).restart(name, timeout_s=timeout_s)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"Restarted {name}.")
    output.result(str(answer.get("state", "running")))
