"""Groups of commands: in the order of a life, each with its whole description; imported when they are used."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class WholeGroup(click.Group):
    """Lists its commands in the order in which they were added, each with its whole first sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (the signature is click's)
        """Return the names in the order in which they were given: the order of a life, not of the alphabet."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` begin with; the refusal of an unknown one names those that there are."""
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            from kt_manifest import nearest

            close = nearest.nearest(args[0], known)
            hint = f"; did you mean {close}?" if close else ""
            ctx.fail(f"got the verb {args[0]!r}, wanted one of: {', '.join(known)}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with its whole first sentence: click would cut it at the edge of the screen."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(limit=_WHOLE)) for name, command in found if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyGroup(WholeGroup):
    """Knows its commands as `name -> "module:attribute"`; listing the names imports nothing."""

    def __init__(self, *arguments: Any, sources: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._sources = dict(sources)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (the signature is click's)
        """Return the names in the order in which they were given: the order of a life, not of the alphabet."""
        return list(self._sources)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (the signature is click's)
        """Import and return one command, or None where there is no such name."""
        if cmd_name not in self._sources:
            return None
        module, _, attribute = self._sources[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


_WHOLE = 1000
