"""`kt agent memory`: a folder, or a promise, that outlives every Run of an agent."""

from typing import Any

import click

from kt_cli import completing, figures, output, session, table, terminal
from kt_cli.lazy_group import WholeGroup


@click.group(cls=WholeGroup, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def memory(ctx: click.Context) -> None:
    """Attach memory to an agent, show it, detach it.

    \b
    Example:
      kt agent memory attach bot --kind filesystem
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@memory.command()
@completing.name_argument
@click.option(
    "--kind",
    type=click.Choice(("filesystem", "native")),
    required=True,
    help="A folder that kt keeps, or the agent's own way within its Home.",
)
@output.json_option
def attach(name: str, *, kind: str, as_json: bool) -> None:
    """Attach memory to an agent that does not run.

    `filesystem` is a folder in the Agent Home, whose path is delivered as memory.dir where the adapter maps it.
    `native` only records that the agent keeps its own. The last line is the path, where there is one.

    \b
    Examples:
      kt agent memory attach bot --kind filesystem
      kt agent memory attach bot --kind native --json
    """
    answer = session.client_for(name).memory_attach(name, kind)
    if as_json:
        output.document(answer)
        return
    output.result(output.wrapped(str(answer["boundary"])))
    if answer.get("dir"):
        # As it is: a script takes the last line for the path, and a wrapped or escaped one would be none.
        output.result(str(answer["dir"]))


@memory.command()
@completing.name_argument
@output.json_option
def detach(name: str, *, as_json: bool) -> None:
    """Detach memory from an agent that does not run. What is in the folder stays.

    \b
    Example:
      kt agent memory detach bot
    """
    answer = session.client_for(name).memory_detach(name)
    output.notices(answer)
    if as_json:
        output.document({key: value for key, value in answer.items() if key != "notices"})
        return
    if not answer.get("notices"):
        output.result(f"Detached the memory of {name}; its data was kept.")


@memory.command()
@completing.name_argument
@output.json_option
def show(name: str, *, as_json: bool) -> None:
    """Show what memory an agent has.

    \b
    Example:
      kt agent memory show bot
    """
    answer = session.client_for(name).memory_show(name)
    if as_json:
        output.document(answer)
        return
    if answer["kind"] is None:
        output.result(f"{name} has no memory attached.")
        output.note(f"attach some: kt agent memory attach {name} --kind filesystem")
        return
    output.result(table.render(("Field", "Value"), _rows(answer), width=terminal.width()))
    output.result("\n" + output.wrapped(str(answer["boundary"])))


def _rows(answer: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("Kind", str(answer["kind"])), ("Guarantee", str(answer["guarantee"]))]
    if answer["dir"]:
        there = "" if answer.get("present") else " (missing; made again at the next start)"
        rows.append(("Folder", f"{answer['dir']}{there}"))
        rows.append(
            (
                "Told to the agent",
                "yes" if answer["declared"] else f"{figures.ABSENT} (memory.dir is mapped nowhere)",
            )
        )
    return rows
