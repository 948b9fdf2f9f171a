"""`kt agent stop`: returns when nothing of the agent is left."""

import click

from kt_cli import completing, output, session

DEFAULT_TIMEOUT_S = 30.0


LONGEST_S = 86_400


def _seconds(_: click.Context, option: click.Parameter, value: float) -> float:
    if not 0 <= value <= LONGEST_S:  # NaN passes every range of click's
        raise click.BadParameter(
            f"got {value}, wanted a number of seconds from 0 to {LONGEST_S}", param=option
        )
    return value


timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=float,
    callback=_seconds,
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    metavar="SECS",
    help="How long it may take to end by itself; 0 ends it at once.",
)


@click.command()
@completing.name_argument
@timeout_option
@output.json_option
def stop(name: str, *, timeout_s: float, as_json: bool) -> None:
    """Stop an agent and everything that it started.

    \b
    Examples:
      kt agent stop bot
      kt agent stop bot --timeout 0
    """
    answer = session.client_for(name).stop(name, timeout_s=timeout_s)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(str(answer.get("state", "stopped")))
