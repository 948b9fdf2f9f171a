"""From a frozen adapter, resolved settings and the facts of a Run to what is started: pure, nothing is read or written.

What each key stands for is `delivery`'s, who sets a variable `environment`'s, what a file says `native_file`'s. What
the engine delivers itself (addresses, memory folder, placeholder key) wins over every setting. Where the adapter
declares how its agent writes placeholders, nothing is rendered that would leave one of them without a value.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kt_manifest import exit_codes
from kt_manifest.configuration import options, secret_syntax
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter, FileTarget, FlagTarget
from kt_manifest.launch import (
    agent_home,
    environment,
    executable,
    inheritance,
    native_file,
    placing,
    posture,
    run_facts,
    substitution,
)
from kt_manifest.launch.delivery import Delivery
from kt_manifest.launch.provenance import EnvEntry, Source
from kt_manifest.launch.run_facts import ENGINE_KEYS
from kt_manifest.launch.substitution import Carried, PlaceholderUnset, Unset

RenderedFile = agent_home.RenderedFile
RenderRefused = agent_home.RenderRefused
MergedFile = native_file.MergedFile
MergeRefused = placing.MergeRefused
RunFacts = run_facts.RunFacts
write_files = placing.write_files
put_back = placing.put_back
merges_pending = placing.merges_pending
make_folders = agent_home.make_folders
find_executable = executable.find_executable
ExecutableMissing = executable.ExecutableMissing
NotExecutable = executable.NotExecutable
LOOPBACK = environment.LOOPBACK


class NothingToLaunch(Exception):
    """The kind has no program: it can be registered, and never started."""

    exit_code = exit_codes.FAILED

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.got = f"the kind {kind}, which launches nothing"
        self.wanted = "an agent with a program to start"
        self.do = "register an agent with --manifest, or with --kind command"
        super().__init__(f"cannot launch: got {self.got}, wanted {self.wanted}; {self.do}")


@dataclass(frozen=True, slots=True)
class ArgEntry:
    """One word of the command line; `key` is the setting that it belongs to. The text shows in no repr."""

    text: str = field(repr=False)
    source: Source
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is started: `argv[0]` is a bare name or an absolute path; secrets do not show in a repr.

    `folders` must be there before the start, relative to the Agent Home. `secret_texts` are the clear texts of all
    secrets that are delivered: whoever shows a launch masks them. `unset` are placeholders without a value: a launch
    that has some is only for showing.
    """

    arguments: tuple[ArgEntry, ...]
    variables: tuple[EnvEntry, ...]
    files: tuple[RenderedFile, ...]
    merges: tuple[MergedFile, ...] = ()
    folders: tuple[str, ...] = ()
    notices: tuple[str, ...]
    secret_texts: frozenset[str] = field(default=frozenset(), repr=False)
    unset: tuple[Unset, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the command line."""
        return tuple(entry.text for entry in self.arguments)

    @property
    def env(self) -> dict[str, str]:
        """Return the variables by name."""
        return {entry.name: entry.value for entry in self.variables}


def render(adapter: Adapter, values: Mapping[str, Value], run: RunFacts) -> Launch:
    """Return the launch of one Run.

    Args:
        values: the effective settings by dotted key, secrets resolved (`secrets.resolve_all`). A key that the adapter
            maps nowhere is delivered nowhere.

    Raises:
        PlaceholderUnset: the agent would replace a placeholder by nothing.
        And what `preview` raises.
    """
    launch = preview(adapter, values, run)
    if launch.unset:
        raise PlaceholderUnset(launch.unset, agent=run.instance_name)
    return launch


def program(launch: Launch, cwd: Path, *, remedy: Callable[[], str | None] | None = None) -> str:
    """Return the absolute path of the program that is started; `remedy` says what to do where it is not there.

    Raises:
        ExecutableMissing, NotExecutable.
    """
    setter = next((entry for entry in launch.variables if entry.name == "PATH"), None)
    path_from = "" if setter is None or setter.source is Source.INHERITED else setter.setter
    return find_executable(launch.argv[0], launch.env, cwd, path_from=path_from, remedy=remedy)


def preview(adapter: Adapter, values: Mapping[str, Value], run: RunFacts) -> Launch:
    """Return the launch of one Run, also where it would be refused for a placeholder without a value.

    Raises:
        NothingToLaunch: the adapter has no start template.
        ReferenceRefused, ValueUnfit, ValueMissing: a setting cannot be delivered.
        RenderRefused: two values in one place of a file, or one that its format cannot say.
        SwitchUndeliverable: self-update cannot be switched off in the agent's configuration.
    """
    if adapter.start is None:
        raise NothingToLaunch(adapter.kind)
    delivery = Delivery(values, run, adapter.types)
    variables, notices = environment.of(adapter, values, run, delivery)
    arguments = tuple(_arguments(adapter, delivery))
    delivered = (rule.key for rule in adapter.mapping if delivery.value(rule.key) is not None)
    exposed = exposures(adapter, {key for key in delivered if delivery.is_secret(key)})
    files, merges, replaced = posture.merged(adapter.posture, *native_file.of(adapter, delivery, run))
    key = values.get(options.UPSTREAM_API_KEY)
    held = (key if isinstance(key, str) else None, run.placeholder_key)
    launch = Launch(
        arguments=arguments,
        variables=variables,
        files=files,
        merges=merges,
        folders=posture.folders(adapter.posture),
        notices=(*notices, *exposed, *replaced),
        secret_texts=delivery.secret_texts() | frozenset(filter(None, held)),
    )
    unset = substitution.unset(
        _carried(launch, adapter, delivery),
        launch.env,
        syntaxes=adapter.posture.substitution,
        secrets=launch.secret_texts,
    )
    return replace(launch, unset=tuple(unset))


def _arguments(adapter: Adapter, delivery: Delivery) -> Iterator[ArgEntry]:
    assert adapter.start is not None, "judged before"
    for text in (adapter.start.exec, *adapter.start.args):
        yield ArgEntry(text, Source.ADAPTER)
    # Before what settings add: a prompt often follows a "--", behind which nothing is an option any more.
    for text in posture.arguments(adapter.posture):
        yield ArgEntry(text, Source.UPDATES)
    for rule in adapter.mapping:
        if isinstance(rule.target, FlagTarget) and (value := delivery.value(rule.key)) is not None:
            delivery.typed(rule.key)  # refuses what is not of the key's type
            source = Source.ENGINE if rule.key in ENGINE_KEYS else Source.SETTING
            yield from (ArgEntry(text, source, rule.key) for text in _flag_tokens(rule.target.flag, value))


def _carried(launch: Launch, adapter: Adapter, delivery: Delivery) -> Iterator[Carried]:
    """Give every text that reaches the agent by a launch, and what to call it."""
    for entry in launch.variables:
        if entry.source is not Source.INHERITED:
            label = entry.setter if entry.key else f"{entry.setter}, {entry.name}"
            yield Carried(label, entry.value)
        elif not inheritance.inherited({entry.name: ""}):
            # Somebody asked for it by env.inherit, so it may well be meant for the agent's configuration.
            yield Carried(f"{options.ENV_INHERIT}, {entry.name}", entry.value)
    for argument in launch.arguments[1:]:
        yield Carried(argument.key or _argument_label(argument), argument.text)
    for rule in adapter.mapping:
        if isinstance(rule.target, FileTarget) and rule.shape.template is None:
            yield from (Carried(rule.key, text) for text in _texts(delivery.value(rule.key)))
    for file in launch.files:
        yield Carried(file.path, file.content)
    for merged in launch.merges:
        for place, value in merged.edits:
            yield from (Carried(merged.path, text) for text in (*place, *_texts(value)))


def _texts(value: Any) -> Iterator[str]:
    """Give every text in a value, the names of its tables included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _argument_label(argument: ArgEntry) -> str:
    return "[kt.updates] args" if argument.source is Source.UPDATES else "[lifecycle.start] args"


def exposures(adapter: Adapter, secret_keys: Collection[str]) -> tuple[str, ...]:
    """Return the warnings for what the adapter puts on a command line though it carries a secret.

    Args:
        adapter: whose mapping.
        secret_keys: the keys that carry one: at a registration those of the engine (`CARRY_A_TOKEN`), where a setting
            is changed those in which it puts a reference (`secret_settings`), at a start those that are delivered so.
    """
    return tuple(
        f"{rule.key} carries a secret and is delivered as {rule.target.flag}: "
        "other users can see it in the process list"
        for rule in adapter.mapping
        if isinstance(rule.target, FlagTarget) and rule.key in secret_keys
    )


def secret_settings(settings: Mapping[str, Value]) -> frozenset[str]:
    """Return the settings whose value carries a secret to the agent: a reference in it, or all of it.

    What the engine delivers in a setting's place, such as the token for the provider's key, is no setting's value.
    """
    return frozenset(
        key for key, value in settings.items() if key not in ENGINE_KEYS and secret_syntax.refers(value)
    )


def _flag_tokens(flag: str, value: Value) -> list[str]:
    return [token for item in ([value] if isinstance(value, str) else value) for token in (flag, item)]
