"""The `kt` command: finds the verb, runs it, and turns every way of ending into an exit code.

Laws: standard output carries the result, standard error everything else; no traceback reaches a user (`KT_DEBUG=1`
asks for it); a reader that closes the pipe is no error. Imports no other room and, until a verb is known, nothing
that is slow.
"""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from kt_cli import environment, exit_codes
from kt_cli.lazy_group import LazyGroup

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

AGENT_VERBS = {
    "register": "kt_cli.commands.register:register",
    "list": "kt_cli.commands.fleet:show_fleet",
    "show": "kt_cli.commands.show:show",
    "usage": "kt_cli.commands.usage:usage",
    "render": "kt_cli.commands.render:render",
    "start": "kt_cli.commands.start:start",
    "stop": "kt_cli.commands.stop:stop",
    "restart": "kt_cli.commands.restart:restart",
    "pause": "kt_cli.commands.pause:pause",
    "resume": "kt_cli.commands.pause:resume",
    "calls": "kt_cli.commands.calls:calls",
    "logs": "kt_cli.commands.logs:logs",
    "send": "kt_cli.commands.send:send",
    "attach": "kt_cli.commands.attach:attach",
    "config": "kt_cli.commands.config:config",
    "memory": "kt_cli.commands.memory:memory",
    "remove": "kt_cli.commands.remove:remove",
}
ENGINE_VERBS = {
    "run": "kt_cli.commands.engine:run",
    "start": "kt_cli.commands.engine:start",
    "stop": "kt_cli.commands.engine:stop",
    "status": "kt_cli.commands.engine:status",
    "upgrade": "kt_cli.commands.engine:upgrade",
    "install": "kt_cli.commands.service:install",
    "uninstall": "kt_cli.commands.service:uninstall",
}
TOP_VERBS = {
    "agent": "kt_cli.main:agent",
    "engine": "kt_cli.main:engine",
    "events": "kt_cli.commands.events:events",
    "adapter": "kt_cli.commands.adapter:adapter",
    "doctor": "kt_cli.commands.doctor:doctor",
    "demo": "kt_cli.commands.demo:demo",
}


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from kt_ledger.version import VERSION

        click.echo(f"kt {VERSION}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    sources=TOP_VERBS,
    context_settings=SETTINGS,
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Say which kt this is.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run AI agents that somebody else wrote like services, and know to the token what they used.

    \b
    Begin here:
      kt demo                                       (no key, no network)
      kt agent register bot --manifest ./my-agent   (or: --kind command -- prog)
      kt agent start bot
      kt agent usage bot

    The state lives in KTESIO_STATE_DIR, else in the platform's data directory under "ktesio".
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.group(
    cls=LazyGroup,
    sources=AGENT_VERBS,
    context_settings=SETTINGS,
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.pass_context
def agent(ctx: click.Context) -> None:
    """Register, start, watch, meter and stop agents.

    \b
    Example:
      kt agent register bot --kind command --observe -- python "$PWD/bot.py"
      kt agent config set bot metering.upstream_base_url https://api.openai.com/v1
      kt agent start bot
      kt agent list
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.group(
    cls=LazyGroup,
    sources=ENGINE_VERBS,
    context_settings=SETTINGS,
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.pass_context
def engine(ctx: click.Context) -> None:
    """Look after the engine, the process behind all verbs.

    There is one per state directory. Every verb that needs it starts it; agents live on when it stops.

    \b
    Example:
      kt engine status --json
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> None:
    """Run `kt` with `argv` (default: the process's own) and exit with a code of `exit_codes`."""
    # A descriptor that the caller closed leaves no stream (sys, "__stdout__"): what is said goes nowhere then.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a terminal that knows no dash is no reason to fail
    if environment.completing():
        cli.main(prog_name="kt")
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: Sequence[str]) -> int:
    """Run one command and return the exit code of how it ended, having said on standard error why."""
    try:
        # Not `cli.main`: click turns a closed pipe into exit 1 there (`click.core.BaseCommand.main`).
        with cli.make_context("kt", list(argv)) as context:
            result = cli.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else exit_codes.DONE
    except BrokenPipeError:
        _forget_output()
        return exit_codes.DONE
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    except Exception as error:
        return _say(error)


def _say(error: Exception) -> int:
    """Tell people what went wrong: on purpose (an exception that carries a code) or not."""
    if environment.debugging():
        import traceback

        traceback.print_exception(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        _forget_output()
        click.echo(
            "kt: what was asked may be done, but the answer could not be written: no space left", err=True
        )
        return exit_codes.FAILED
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        click.echo(f"kt: {error}", err=True)
        return code
    what = str(error) or "no message"
    click.echo(
        f"kt: unexpected {type(error).__name__}: {what} (KT_DEBUG=1 shows where; please report it)", err=True
    )
    return exit_codes.FAILED


def _nowhere() -> Any:
    return open(os.devnull, "w", encoding="utf-8")


def _forget_output() -> None:
    """Let the interpreter flush what is left into nothing: the reader has gone."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


if __name__ == "__main__":
    main()
