"""From a frozen adapter, resolved settings and the facts of a Run to what is started: pure, nothing is read or written.

Of two values for one variable the stronger wins, in the order of `provenance.STRENGTH`, so that no setting can lead an
agent around its meter by accident; whatever loses is told. Where the adapter declares how its agent writes
placeholders, nothing is rendered that would leave one of them without a value.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kt_manifest.configuration import options
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter, FileTarget, FlagTarget, Target
from kt_manifest.launch import (
    agent_home,
    environment,
    executable,
    inheritance,
    native_file,
    posture,
    run_facts,
    substitution,
)
from kt_manifest.launch.provenance import EnvEntry, Source
from kt_manifest.launch.run_facts import CARRY_A_TOKEN
from kt_manifest.launch.substitution import Carried, PlaceholderUnset, Unset

RenderedFile = agent_home.RenderedFile
RenderRefused = agent_home.RenderRefused
write_files = agent_home.write_files
make_folders = agent_home.make_folders
find_executable = executable.find_executable
RunFacts = run_facts.RunFacts
ENGINE_KEYS = run_facts.ENGINE_KEYS
ExecutableMissing = executable.ExecutableMissing
NotExecutable = executable.NotExecutable


class NothingToLaunch(Exception):
    """The kind has no program: it can be registered, and never started."""

    exit_code = 1

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

    `folders` must be there before the start, relative to the Agent Home. `unset` are placeholders without a value: a
    launch that has some is only for showing.
    """

    arguments: tuple[ArgEntry, ...]
    variables: tuple[EnvEntry, ...]
    files: tuple[RenderedFile, ...]
    folders: tuple[str, ...] = ()
    notices: tuple[str, ...]
    unset: tuple[Unset, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the command line."""
        return tuple(entry.text for entry in self.arguments)

    @property
    def env(self) -> dict[str, str]:
        """Return the variables by name."""
        return {entry.name: entry.value for entry in self.variables}


Delivery = tuple[str, Target, Value]
"""A key, where its value goes, and the value."""


def render(adapter: Adapter, values: Mapping[str, Value], run: RunFacts) -> Launch:
    """Return the launch of one Run.

    Args:
        values: the effective settings by dotted key, secrets resolved (`secrets.resolve_all`). A key that the adapter
            maps nowhere is delivered nowhere.

    Raises:
        PlaceholderUnset: the agent would replace a placeholder by nothing.
        NothingToLaunch, SwitchUndeliverable: as `preview`.
    """
    launch = preview(adapter, values, run)
    if launch.unset:
        raise PlaceholderUnset(launch.unset)
    return launch


def preview(adapter: Adapter, values: Mapping[str, Value], run: RunFacts) -> Launch:
    """Return the launch of one Run, also where it would be refused for a placeholder without a value.

    Raises:
        NothingToLaunch: the adapter has no start template.
        SwitchUndeliverable: self-update cannot be switched off in the agent's configuration.
    """
    if adapter.start is None:
        raise NothingToLaunch(adapter.kind)
    delivered = run.delivered()
    found, notices = environment.of(adapter, values, run)
    deliveries: list[Delivery] = [
        (rule.key, rule.target, value)
        for rule in adapter.mapping
        if (value := delivered.get(rule.key) if rule.key in ENGINE_KEYS else values.get(rule.key)) is not None
    ]
    flags = [(key, target, value) for key, target, value in deliveries if isinstance(target, FlagTarget)]
    notices += [
        _exposure(key, target.flag) for key, target, _ in flags if key in run.secret_keys | CARRY_A_TOKEN
    ]
    launch = Launch(
        arguments=tuple(_arguments(adapter, flags)),
        variables=found,
        files=_files(adapter, deliveries, run),
        folders=posture.folders(adapter.posture),
        notices=tuple(notices),
    )
    if not adapter.posture.substitution:
        return launch
    unset = substitution.unset(
        _carried(launch, deliveries),
        launch.env,
        syntaxes=adapter.posture.substitution,
        secrets=clear_secrets(values, run),
    )
    return replace(launch, unset=tuple(unset))


def clear_secrets(values: Mapping[str, Value], run: RunFacts) -> list[str]:
    """Return the clear values of which nothing may be told."""
    keys = run.secret_keys | {options.UPSTREAM_API_KEY}
    held = [value for key in sorted(keys) if isinstance(value := values.get(key), str)]
    return [text for text in (*held, run.placeholder_key) if text]


def _arguments(adapter: Adapter, flags: Iterable[tuple[str, FlagTarget, Value]]) -> Iterator[ArgEntry]:
    assert adapter.start is not None, "judged before"
    for text in (adapter.start.exec, *adapter.start.args):
        yield ArgEntry(text, Source.ADAPTER)
    for key, target, value in flags:
        source = Source.ENGINE if key in ENGINE_KEYS else Source.SETTING
        yield from (ArgEntry(text, source, key) for text in _flag_tokens(target.flag, value))
    for text in posture.arguments(adapter.posture):
        yield ArgEntry(text, Source.UPDATES)


def _carried(launch: Launch, deliveries: Iterable[Delivery]) -> Iterator[Carried]:
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
    for key, target, value in deliveries:
        if isinstance(target, FileTarget):
            yield from (Carried(key, text) for text in ([value] if isinstance(value, str) else value))
    for file in launch.files:
        yield Carried(file.path, file.content)


def _argument_label(argument: ArgEntry) -> str:
    return "[kt.updates] args" if argument.source is Source.UPDATES else "[lifecycle.start] args"


def token_exposures(adapter: Adapter) -> tuple[str, ...]:
    """Return the warnings for what the engine delivers with the token of a Run in it, on a command line."""
    return tuple(
        _exposure(rule.key, rule.target.flag)
        for rule in adapter.mapping
        if rule.key in CARRY_A_TOKEN and isinstance(rule.target, FlagTarget)
    )


def exposure(adapter: Adapter, key: str) -> str | None:
    """Return the warning for a secret at `key` that the adapter would put on a command line; None when it does not."""
    flags = [
        rule.target.flag
        for rule in adapter.mapping
        if rule.key == key and isinstance(rule.target, FlagTarget)
    ]
    return _exposure(key, flags[0]) if flags and key not in ENGINE_KEYS else None


def _exposure(key: str, flag: str) -> str:
    return f"{key} carries a secret and is delivered as {flag}: other users can see it in the process list"


def _files(adapter: Adapter, deliveries: list[Delivery], run: RunFacts) -> tuple[RenderedFile, ...]:
    header = (
        f"{agent_home.HEADER} for instance {run.instance_id}, run {run.run_id}; rewritten at each start.\n"
    )
    targets = [rule.target for rule in adapter.mapping if isinstance(rule.target, FileTarget)]
    contents: dict[str, list[tuple[str, Value]]] = {target.path: [] for target in targets}
    for _, target, value in deliveries:
        if isinstance(target, FileTarget):
            contents[target.path].append((target.key, value))
    return tuple(
        RenderedFile(path, header + native_file.toml(pairs) if pairs else "")
        for path, pairs in contents.items()
    )


def _flag_tokens(flag: str, value: Value) -> list[str]:
    return [token for item in ([value] if isinstance(value, str) else value) for token in (flag, item)]
