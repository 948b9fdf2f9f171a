"""`kt config`: read and change what is set for all agents."""

import click

from kt_cli import configuring, output
from kt_cli.configuring import (
    AS_IT_IS,
    key_argument,
    optional_key,
    reveal_option,
    set_key_argument,
    source_option,
    value_argument,
)
from kt_cli.lazy_group import WholeGroup


@click.group("config", cls=WholeGroup, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Read and change what is set for all agents, unless one says otherwise.

    \b
    Example:
      kt config set agent.TEAM research
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@config.command("set", context_settings=AS_IT_IS)
@output.json_option
@key_argument
@value_argument
def set_value(key: str, value: tuple[str, ...], *, as_json: bool) -> None:
    """Set KEY to VALUE for all agents that do not say otherwise.

    \b
    Example:
      kt config set restart.policy never
    """
    configuring.set_value(None, key, value, as_json=as_json)


@config.command("get")
@optional_key
@reveal_option
@source_option
@output.json_option
def get(key: str | None, *, reveal: bool, source: bool, as_json: bool) -> None:
    """Show what is set for all agents, the defaults included; of one KEY the value alone.

    \b
    Example:
      kt config get
    """
    configuring.get(None, key, reveal=reveal, source=source, as_json=as_json)


@config.command("unset")
@set_key_argument
@output.json_option
def unset_value(key: str, *, as_json: bool) -> None:
    """Forget what was set for KEY for all agents.

    \b
    Example:
      kt config unset restart.policy
    """
    configuring.unset(None, key, as_json=as_json)


@config.command("edit")
def edit() -> int:
    """Edit what is set for all agents as a whole, in VISUAL or EDITOR; judged before it takes its place.

    \b
    Example:
      kt config edit
    """
    return configuring.edit(None)


config.add_command(configuring.keys)
