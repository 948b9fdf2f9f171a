"""What a shell offers behind the verbs: names of agents, secrets and adapters, keys, and values that can be counted.

Nothing here asks the engine: it is run at every press of a key. Of the files that it reads only names are offered,
never a value; a file that cannot be read offers nothing.
"""

import os
from collections.abc import Iterable
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


def set_keys(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the keys that are set for the agent that stands before, or for all agents where none does."""
    from kt_manifest.configuration import config_file

    files, name = environment.state(), ctx.params.get("name")
    try:
        path = files.fleet_config if name is None else files.home(str(name)) / config_file.NAME
        return _beginning(incomplete, config_file.read(path))
    except (config_file.MalformedLayer, config_file.LayerUnavailable, OSError, ValueError):
        return []


def values(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the values of the key that stands before, where they can be counted, and secrets by reference."""
    key = str(ctx.params.get("key"))
    return _beginning(incomplete, _choices(key)) + _references(key, incomplete)


def secret_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that `secrets.toml` keeps."""
    return _beginning(incomplete, _secret_names())


def shipped_kinds(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the kinds of the adapters that come with kt."""
    from kt_manifest.contract import shipped_folder

    try:
        return _beginning(incomplete, shipped_folder.kinds())
    except shipped_folder.AdaptersMissing:
        return []


def shipped_or_paths(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the kinds that begin like this; where none does, let the shell offer its files."""
    kinds = [CompletionItem(kind) for kind in shipped_kinds(ctx, parameter, incomplete)]
    return kinds or [CompletionItem(incomplete, type="file")]


def builtin_kinds(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the kinds that need no adapter.toml."""
    from kt_manifest.contract import kinds

    return _beginning(incomplete, kinds.BUILTIN)


def sections(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the sections of the conformance kit."""
    from kt_conformance import catalogue

    return [name for name in catalogue.SECTIONS if name.startswith(incomplete)]


def assignments(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return `KEY=` for a beginning of a key, and `KEY=VALUE` behind a whole one whose values can be counted."""
    key, is_whole, begun = incomplete.partition("=")
    if not is_whole:
        return _keys(incomplete, suffix="=")
    found = _beginning(begun, _choices(key)) + _references(key, begun)
    return [CompletionItem(f"{key}={value}") for value in found]


name_argument = click.argument("name", shell_complete=agent_names)
"""The argument of every verb about one agent that is there."""


class Bash(shell_completion.BashComplete):
    """As click's own, for words with `=` or `:` in them.

    bash(1), COMP_WORDBREAKS: it takes `--set KEY=secret:NAME` apart at the signs, and replaces only what stands behind
    the last.
    What goes on behind the offer (`KEY=`, `agent.`) gets no space.
    """

    source_template = shell_completion.BashComplete.source_template.replace(
        "COMPREPLY+=($value)",
        'COMPREPLY+=($value)\n            [[ "$value" == *[=.:] ]] && compopt -o nospace 2>/dev/null',
    )

    _apart = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before, and the one to complete, put together again."""
        args, incomplete = super().get_completion_args()
        if incomplete in _SIGNS:
            args, incomplete = [*args, incomplete], ""
        joined: list[str] = []
        for word in args:
            if joined and (word in _SIGNS or joined[-1].endswith(_SIGNS)):
                joined[-1] += word
            else:
                joined.append(word)
        if args and args[-1] in _SIGNS and joined:
            self._apart = joined.pop()
            incomplete = self._apart + incomplete
        return joined, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return what the script reads: the part that bash replaces."""
        return f"{item.type},{str(item.value).removeprefix(self._apart)}"


_SIGNS = ("=", ":")


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


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _secret_names() -> list[str]:
    from kt_manifest.configuration import secrets_file

    try:
        return sorted(secrets_file.entries(environment.state().secrets))
    except (secrets_file.SecretsFileUnusable, OSError, ValueError):
        return []


def _references(key: str, incomplete: str) -> list[str]:
    """Return `secret:NAME` of each name, once somebody has begun to write one or the key is there for one."""
    from kt_manifest.configuration import options

    if not incomplete and key not in options.SENSITIVE:
        return []
    return _beginning(incomplete, (f"secret:{name}" for name in _secret_names()))


def _choices(key: Any) -> tuple[str, ...]:
    from kt_manifest.configuration import options

    option = options.BY_KEY.get(str(key))
    return () if option is None else option.type.choices
