"""`kt agent remove`: take a registration away; the ledger keeps what was used."""

import click

from kt_cli import completing, output, session


@click.command()
@completing.name_argument
@click.option("--delete", "delete", is_flag=True, help="Delete the Agent Home, its memory folder included.")
@click.option("--retain", "retain", is_flag=True, help="Keep the Agent Home and its memory (the default).")
@click.option("--force", is_flag=True, help="Stop it first where it runs.")
@output.json_option
def remove(name: str, *, delete: bool, retain: bool, force: bool, as_json: bool) -> None:
    """Remove an agent. What it used stays in the ledger; the name becomes free.

    \b
    Examples:
      kt agent remove bot
      kt agent remove bot --delete --force
    """
    if delete and retain:
        raise click.UsageError("got both --delete and --retain; wanted one of them")
    answer = session.client_for(name).remove(name, delete=delete, force=force)
    output.notices(answer)
    if as_json:
        output.document(answer)
        return
    output.result(f"Removed {name}; its Agent Home was {'deleted' if delete else 'kept'}.")
