"""The variables of one launch, gathered from all who have a say: caller, adapter, settings, engine. Pure."""

import shlex
from collections.abc import Iterable, Iterator, Mapping

from kt_manifest.configuration import options, secrets
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter, EnvTarget
from kt_manifest.launch import posture, provenance
from kt_manifest.launch.provenance import EnvEntry, Source
from kt_manifest.launch.run_facts import ENGINE_KEYS, RunFacts

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NO_PROXY_NAMES = ("NO_PROXY", "no_proxy")


def of(
    adapter: Adapter, values: Mapping[str, Value], run: RunFacts
) -> tuple[tuple[EnvEntry, ...], list[str]]:
    """Return the variables of a launch, and what is told of those that lost.

    Raises:
        SwitchUndeliverable: as `posture.switched`.
    """
    inherited = dict(run.base_environment)
    withheld = _withhold_key(inherited, values.get(options.UPSTREAM_API_KEY), run)
    started = adapter.start.env if adapter.start else {}
    composed, told = provenance.compose(
        [
            *(EnvEntry(name, value, Source.INHERITED) for name, value in inherited.items()),
            *(EnvEntry(name, value, Source.ADAPTER) for name, value in started.items()),
            *posture.entries(adapter.posture, run.home),
            *(
                EnvEntry(key.removeprefix(options.PASS_THROUGH), _as_text(value), Source.SETTING, key)
                for key, value in values.items()
                if key.startswith(options.PASS_THROUGH)
            ),
            *_mapped(adapter, values, Source.SETTING),
            *_mapped(adapter, run.delivered(), Source.ENGINE),
            *_identity(run),
        ]
    )
    switched, replaced = posture.switched(adapter.posture, composed)
    return tuple(_exempt_loopback(switched)), withheld + told + replaced


def _mapped(adapter: Adapter, values: Mapping[str, Value], source: Source) -> Iterator[EnvEntry]:
    for rule in adapter.mapping:
        of_engine = rule.key in ENGINE_KEYS
        if (
            isinstance(rule.target, EnvTarget)
            and rule.key in values
            and of_engine is (source is Source.ENGINE)
        ):
            yield EnvEntry(rule.target.name, _as_text(values[rule.key]), source, rule.key)


def _identity(run: RunFacts) -> Iterator[EnvEntry]:
    # Strongest of all: the keeper finds its tree by these, so that nothing may speak for another Run.
    if run.instance_name:
        yield EnvEntry("KT_INSTANCE", run.instance_name, Source.ENGINE)
        yield EnvEntry("KT_RUN", run.run_id, Source.ENGINE)


def _withhold_key(env: dict[str, str], key: Value | None, run: RunFacts) -> list[str]:
    # The caller's own environment is where secret:NAME was found; the agent must not find it there as well.
    if run.placeholder_key is None or not isinstance(key, str) or not key:
        return []
    by_name = key.removeprefix(secrets.PREFIX) if secrets.is_reference(key) else None
    holders = [name for name, value in env.items() if value == key or name == by_name]
    for name in holders:
        del env[name]
    return [f"{name} is withheld from the agent: it holds the provider's key" for name in holders]


def _exempt_loopback(variables: Iterable[EnvEntry]) -> Iterator[EnvEntry]:
    """Add loopback to NO_PROXY and no_proxy: every client tried sends it to HTTP_PROXY otherwise."""
    found = {entry.name: entry for entry in variables}
    there = {name: found[name].value for name in _NO_PROXY_NAMES if name in found and found[name].value}
    for name in _NO_PROXY_NAMES:
        # A client reads one of the two: the absent one must not hide what the other says.
        current = there.get(name) or next(iter(there.values()), "")
        hosts = [host.strip() for host in current.split(",") if host.strip()]
        # "*" is everything, and only when it stands alone (curl(1), NO_PROXY; Python urllib)
        wanted = (
            current if hosts == ["*"] else ",".join(hosts + [host for host in LOOPBACK if host not in hosts])
        )
        if name not in found or found[name].value != wanted:
            found[name] = EnvEntry(name, wanted, Source.ENGINE)
    yield from found.values()


def _as_text(value: Value) -> str:
    return value if isinstance(value, str) else shlex.join(value)
