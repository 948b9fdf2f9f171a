"""`kt agent config`: read and change an agent's configuration."""

import click

from kt_cli import completing, configuring, output, session, settings_view
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


@click.group(cls=WholeGroup, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Read and change an agent's configuration.

    \b
    Example:
      kt agent config set bot metering.upstream_base_url https://api.openai.com/v1
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@config.command("set", context_settings=AS_IT_IS)
@output.json_option
@completing.name_argument
@key_argument
@value_argument
def set_value(name: str, key: str, value: tuple[str, ...], *, as_json: bool) -> None:
    """Set KEY to VALUE. A VALUE that begins with a dash is taken as it is; flags go before NAME.

    \b
    Examples:
      kt agent config set bot model gpt-4o-mini
      kt agent config set bot agent.VERBOSITY -1
      kt agent config set bot metering.upstream_api_key secret:OPENAI_API_KEY
    """
    configuring.set_value(name, key, value, as_json=as_json)


@config.command("get")
@completing.name_argument
@optional_key
@reveal_option
@source_option
@output.json_option
def get(name: str, key: str | None, *, reveal: bool, source: bool, as_json: bool) -> None:
    """Show the configuration that is in effect, and where each value comes from; of one KEY the value alone.

    \b
    Examples:
      kt agent config get bot
      kt agent config get bot model
      kt agent config get bot --source
    """
    configuring.get(name, key, reveal=reveal, source=source, as_json=as_json)


@config.command("unset")
@completing.name_argument
@set_key_argument
@output.json_option
def unset(name: str, key: str, *, as_json: bool) -> None:
    """Forget what was set for KEY.

    \b
    Example:
      kt agent config unset bot model
    """
    configuring.unset(name, key, as_json=as_json)


@config.command("edit")
@completing.name_argument
def edit(name: str) -> int:
    """Edit an agent's settings as a whole, in VISUAL or EDITOR; judged before they take their place.

    \b
    Example:
      kt agent config edit bot
    """
    return configuring.edit(name)


@config.command("diff")
@completing.name_argument
@output.json_option
def diff(name: str, *, as_json: bool) -> None:
    """Show how the next start differs from the last.

    \b
    Example:
      kt agent config diff bot
    """
    answer = session.client_for(name).config_diff(name)
    output.notices(answer)
    settings_view.alarms(answer)
    if as_json:
        output.document(answer)
        return
    for change in answer["changes"]:
        output.result(settings_view.change(change))
    if not answer["changes"] and answer["run_id"]:
        output.result("Nothing would change.")


config.add_command(configuring.keys)
