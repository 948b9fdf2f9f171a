"""From a frozen adapter, resolved settings and the facts of a Run to what is started: pure, nothing is read or written.

Later wins, in this order: what is inherited from the caller, the adapter's own `env`, `agent.*` pass-through, settings
delivered by the mapping, and last what the engine itself delivers (addresses, memory folder, placeholder key), so that
no setting can lead an agent around its meter by accident. Whatever loses among the settings is told.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kt_manifest.configuration import options, secrets
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter, EnvTarget, FileTarget, FlagTarget, Target
from kt_manifest.launch import agent_home, executable, native_file

RenderedFile = agent_home.RenderedFile
RenderRefused = agent_home.RenderRefused
write_files = agent_home.write_files
find_executable = executable.find_executable
ExecutableMissing = executable.ExecutableMissing
NotExecutable = executable.NotExecutable

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NO_PROXY_NAMES = ("NO_PROXY", "no_proxy")


class NothingToLaunch(Exception):
    """The kind has no program: it can be registered, and never started."""

    exit_code = 1

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.got = f"the kind {kind}, which launches nothing"
        self.wanted = "an agent with a program to start"
        self.do = "register an agent with --manifest, or with --kind command"
        super().__init__(f"cannot launch: got {self.got}, wanted {self.wanted}; {self.do}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What the engine knows of the Run that it is about to start.

    Args:
        home: the Agent Home, absolute.
        base_environment: what is inherited of the environment of whoever asked for the start.
        metering_base_url, metering_origin: the instance's listener with and without the provider's path; None
            without a listener.
        placeholder_key: what the agent gets in place of the provider's key; None when its own key passes.
        memory_dir: the attached memory folder.
        secret_keys: the settings that were references before they were resolved.
    """

    home: Path
    base_environment: Mapping[str, str] = field(repr=False)
    metering_base_url: str | None = None
    metering_origin: str | None = None
    placeholder_key: str | None = field(default=None, repr=False)
    instance_id: str = ""
    run_id: str = ""
    memory_dir: Path | None = None
    secret_keys: frozenset[str] = frozenset()

    def delivered(self) -> dict[str, str]:
        """Return the unified keys that the engine delivers itself."""
        facts = {
            options.BASE_URL: self.metering_base_url,
            options.ORIGIN: self.metering_origin,
            options.UPSTREAM_API_KEY: self.placeholder_key,
            options.MEMORY_DIR: None if self.memory_dir is None else str(self.memory_dir),
        }
        return {key: value for key, value in facts.items() if value is not None}


ENGINE_KEYS = frozenset({options.BASE_URL, options.ORIGIN, options.UPSTREAM_API_KEY, options.MEMORY_DIR})
"""Never taken from the settings: a hand-written one cannot lead past the meter, and the provider's key stays here."""


_CARRY_A_TOKEN = frozenset({options.BASE_URL, options.ORIGIN, options.UPSTREAM_API_KEY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is started: `argv[0]` is a bare name or an absolute path; secrets do not show in a repr."""

    argv: tuple[str, ...] = field(repr=False)
    env: dict[str, str] = field(repr=False)
    files: tuple[RenderedFile, ...]
    notices: tuple[str, ...]


def render(adapter: Adapter, values: Mapping[str, Value], run: RunFacts) -> Launch:
    """Return the launch of one Run.

    Args:
        values: the effective settings by dotted key, secrets resolved (`secrets.resolve_all`). A key that the adapter
            maps nowhere is delivered nowhere.

    Raises:
        NothingToLaunch: the adapter has no start template.
    """
    if adapter.start is None:
        raise NothingToLaunch(adapter.kind)
    delivered = run.delivered()
    env, notices = _environment(adapter, values, run)
    deliveries: list[tuple[str, Target, Value]] = [
        (rule.key, rule.target, value)
        for rule in adapter.mapping
        if (value := delivered.get(rule.key) if rule.key in ENGINE_KEYS else values.get(rule.key)) is not None
    ]
    flags = [(key, target, value) for key, target, value in deliveries if isinstance(target, FlagTarget)]
    notices += [
        _exposure(key, target.flag) for key, target, _ in flags if key in run.secret_keys | _CARRY_A_TOKEN
    ]
    arguments = [token for _, target, value in flags for token in _flag_tokens(target.flag, value)]
    return Launch(
        argv=(adapter.start.exec, *adapter.start.args, *arguments),
        env=env,
        files=_files(adapter, deliveries, run),
        notices=tuple(notices),
    )


def exposure(adapter: Adapter, key: str) -> str | None:
    """Return the warning for a secret at `key` that the adapter would put on a command line; None when it does not."""
    flags = [
        rule.target.flag
        for rule in adapter.mapping
        if rule.key == key and isinstance(rule.target, FlagTarget)
    ]
    return _exposure(key, flags[0]) if flags and key not in ENGINE_KEYS else None


def token_exposures(adapter: Adapter) -> tuple[str, ...]:
    """Return the warnings for what the engine delivers with the token of a Run in it, on a command line."""
    return tuple(
        _exposure(rule.key, rule.target.flag)
        for rule in adapter.mapping
        if rule.key in _CARRY_A_TOKEN and isinstance(rule.target, FlagTarget)
    )


def _exposure(key: str, flag: str) -> str:
    return f"{key} carries a secret and is delivered as {flag}: other users can see it in the process list"


def _environment(
    adapter: Adapter, values: Mapping[str, Value], run: RunFacts
) -> tuple[dict[str, str], list[str]]:
    env = dict(run.base_environment)
    notices = _withhold_key(env, values.get(options.UPSTREAM_API_KEY), run)
    inherited = dict(env)
    env.update(adapter.start.env if adapter.start else {})
    mapped = dict(_to_environment(adapter, values))
    passed = {
        key.removeprefix(options.PASS_THROUGH): (key, _as_text(value))
        for key, value in values.items()
        if key.startswith(options.PASS_THROUGH)
    }
    injected = dict(_to_environment(adapter, run.delivered(), engine=True))
    for stronger, weaker in ((mapped, passed), (injected, {**passed, **mapped})):
        notices += [
            f"{weaker[name][0]} is not delivered: {key} sets {name}"
            for name, (key, _) in stronger.items()
            if name in weaker and weaker[name][1] != stronger[name][1]
        ]
    for name, (key, value) in {**passed, **mapped, **injected}.items():
        if inherited.get(name, value) != value and key != options.PASS_THROUGH + name:
            notices.append(f"{name} of the caller's environment is replaced: {key} sets it")
        env[name] = value
    _exempt_loopback(env)
    return env, notices


def _to_environment(
    adapter: Adapter, values: Mapping[str, Value], *, engine: bool = False
) -> Iterator[tuple[str, tuple[str, str]]]:
    for rule in adapter.mapping:
        if isinstance(rule.target, EnvTarget) and rule.key in values and (rule.key in ENGINE_KEYS) is engine:
            yield rule.target.name, (rule.key, _as_text(values[rule.key]))


def _withhold_key(env: dict[str, str], key: Value | None, run: RunFacts) -> list[str]:
    # The caller's own environment is where secret:NAME was found; the agent must not find it there as well.
    if run.placeholder_key is None or not isinstance(key, str) or not key:
        return []
    by_name = key.removeprefix(secrets.PREFIX) if secrets.is_reference(key) else None
    holders = [name for name, value in env.items() if value == key or name == by_name]
    for name in holders:
        del env[name]
    return [f"{name} is withheld from the agent: it holds the provider's key" for name in holders]


def _exempt_loopback(env: dict[str, str]) -> None:
    """Add loopback to NO_PROXY and no_proxy: every client tried sends it to HTTP_PROXY otherwise."""
    there = {name: env[name] for name in _NO_PROXY_NAMES if env.get(name)}
    for name in _NO_PROXY_NAMES:
        # A client reads one of the two: the absent one must not hide what the other says.
        current = there.get(name) or next(iter(there.values()), "")
        hosts = [host.strip() for host in current.split(",") if host.strip()]
        if hosts == ["*"]:  # everything, and only when it stands alone (curl(1), NO_PROXY; Python urllib)
            env[name] = current
            continue
        env[name] = ",".join(hosts + [host for host in LOOPBACK if host not in hosts])


def _files(
    adapter: Adapter, deliveries: list[tuple[str, Target, Value]], run: RunFacts
) -> tuple[RenderedFile, ...]:
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


def _as_text(value: Value) -> str:
    return value if isinstance(value, str) else shlex.join(value)
