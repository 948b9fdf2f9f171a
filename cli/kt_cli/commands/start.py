"""`kt agent start`: returns when the agent runs; the agent outlives the command, the terminal and the engine."""

import click

from kt_cli import output, session


@click.command()
@click.argument("name")
@click.option(
    "--detach", is_flag=True, help="Accepted; an agent is always detached from the command that started it."
)
@output.json_option
def start(name: str, *, detach: bool, as_json: bool) -> None:
    """Start an agent, with what it inherits of this shell's variables.

    Those are PATH, HOME and their like, or what its setting env.inherit names.

    \b
    Examples:
      kt agent start bot
      kt agent config set bot env.inherit "@default DOCKER_HOST"
    """
    del detach  # what it asks for is what always happens
    answer = session.client_for(name).start(name)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"Started {name}.")
    output.result(str(answer.get("state", "running")))
