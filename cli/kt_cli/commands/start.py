"""`kt agent start`: returns when the agent runs; the agent outlives the command, the terminal and the engine."""

import click

from kt_cli import completing, output, session


@click.command()
@completing.name_argument
@click.option(
    "--detach", is_flag=True, help="Accepted; an agent is always detached from the command that started it."
)
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=completing.assignments,
    help="A setting from this start until the next one, restarts included; it wins. May be given again.",
)
@output.json_option
def start(name: str, *, detach: bool, given: tuple[str, ...], as_json: bool) -> None:
    """Start an agent, with what it inherits of this shell's variables.

    Those are PATH, HOME and their like, or what its setting env.inherit names.

    \b
    Examples:
      kt agent start bot
      kt agent start bot --set model=gpt-4o --set restart.policy=never
      kt agent config set bot env.inherit "@default DOCKER_HOST"
    """
    del detach  # what it asks for is what always happens
    answer = session.client_for(name).start(name, settings=_settings(given))
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"Started {name}.")
    output.result(str(answer.get("state", "running")))


def _settings(given: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for assignment in given:
        key, equals, value = assignment.partition("=")
        if not equals or not key:
            raise click.UsageError(f"got --set {assignment!r}, wanted KEY=VALUE")
        if key in settings:
            raise click.UsageError(f"got --set {key} twice, wanted it once")
        settings[key] = value
    return settings
