"""`kt agent stop`: returns when nothing of the agent is left."""

import click

from kt_cli import output, session

DEFAULT_TIMEOUT_S = 30.0


@click.command()
@click.argument("name")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, max=86_400),
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    metavar="SECS",
    help="How long it may take to end by itself; 0 ends it at once.",
)
@output.json_option
def stop(name: str, *, timeout_s: float, as_json: bool) -> None:
    """Stop an agent and everything that it started.

    \b
    Examples:
      kt agent stop bot
      kt agent stop bot --timeout 0
    """
    if timeout_s != timeout_s:  # NaN passes every range
        raise click.BadParameter("got nan, wanted a number of seconds", param_hint="--timeout")
    answer = session.client_for(name).stop(name, timeout_s=timeout_s)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(str(answer.get("state", "stopped")))
