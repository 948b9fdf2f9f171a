"""What a shell offers behind the verbs: names of agents, keys of settings, and values that can be counted.

Nothing here asks the engine or reads a file's content: it is run at every press of a key.
"""

import os
from typing import Any

import click
from click import shell_completion
from click.shell_completion import CompletionItem

from kt_cli import environment


def agent_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the Agent Homes: those of all agents, and of removed ones whose Home was kept."""
    try:
        with os.scandir(environment.state().homes) as homes:
            names = [home.name for home in homes if home.is_dir()]
    except (OSError, ValueError):
        return []
    return sorted(name for name in names if name.startswith(incomplete) and not name.startswith("."))


def keys(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the keys that operators set, with what they mean."""
    return _keys(incomplete, suffix="")


def values(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the values of the key that stands before, where they can be counted."""
    return [choice for choice in _choices(ctx.params.get("key")) if choice.startswith(incomplete)]


def assignments(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return `KEY=` for a beginning of a key, and `KEY=VALUE` behind a whole one whose values can be counted."""
    key, is_whole, begun = incomplete.partition("=")
    if not is_whole:
        return _keys(incomplete, suffix="=")
    return [CompletionItem(f"{key}={value}") for value in _choices(key) if value.startswith(begun)]


name_argument = click.argument("name", shell_complete=agent_names)
"""The argument of every verb about one agent that is there."""


class Bash(shell_completion.BashComplete):
    """As click's own, for words with `=` in them.

    bash(1), COMP_WORDBREAKS: it takes `--set KEY=VALUE` apart at the sign, and replaces only what stands behind it.
    What goes on behind the offer (`KEY=`, `agent.`) gets no space.
    """

    source_template = shell_completion.BashComplete.source_template.replace(
        "COMPREPLY+=($value)",
        'COMPREPLY+=($value)\n            [[ "$value" == *[=.] ]] && compopt -o nospace 2>/dev/null',
    )

    _apart = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before, and the one to complete, put together again."""
        args, incomplete = super().get_completion_args()
        if incomplete == "=":
            args, incomplete = [*args, "="], ""
        if len(args) > 1 and args[-1] == "=":
            self._apart = f"{args[-2]}="
            return args[:-2], self._apart + incomplete
        return args, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return what the script reads: the part that bash replaces."""
        return f"{item.type},{str(item.value).removeprefix(self._apart)}"


def prepare() -> None:
    """Have click use what is here; before a completion or its script is asked for."""
    shell_completion.add_completion_class(Bash)


def _keys(incomplete: str, *, suffix: str) -> list[CompletionItem]:
    from kt_manifest.configuration import options

    offered = [
        CompletionItem(option.key + suffix, help=option.help)
        for option in options.OPTIONS
        if option.effect in (options.Effect.AT_ONCE, options.Effect.NEXT_START)
        and option.key.startswith(incomplete)
    ]
    if options.PASS_THROUGH.startswith(incomplete):
        offered.append(CompletionItem(options.PASS_THROUGH, help="A variable of the agent: agent.NAME"))
    return offered


def _choices(key: Any) -> tuple[str, ...]:
    from kt_manifest.configuration import options

    option = options.BY_KEY.get(str(key))
    return () if option is None else option.type.choices
