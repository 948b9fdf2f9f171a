"""The variables of one launch, gathered from all who have a say: caller, adapter, settings, engine. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping

from kt_manifest.configuration import options, secrets
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter, EnvTarget, Rule
from kt_manifest.launch import posture, provenance
from kt_manifest.launch.delivery import Delivery
from kt_manifest.launch.native.tree import MISSING
from kt_manifest.launch.provenance import EnvEntry, Source
from kt_manifest.launch.run_facts import ENGINE_KEYS, RunFacts

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NO_PROXY_NAMES = ("NO_PROXY", "no_proxy")


def of(
    adapter: Adapter, values: Mapping[str, Value], run: RunFacts, delivery: Delivery
) -> tuple[tuple[EnvEntry, ...], list[str]]:
    """Return the variables of a launch, and what is told of those that lost.

    Raises:
        SwitchUndeliverable: as `posture.switched`. What `Delivery` raises.
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
                EnvEntry(
                    key.removeprefix(options.PASS_THROUGH), delivery.text(key) or "", Source.SETTING, key
                )
                for key in values
                if key.startswith(options.PASS_THROUGH) and not adapter.maps(key)
            ),
            *_mapped(adapter, delivery, Source.SETTING),
            *_mapped(adapter, delivery, Source.ENGINE),
            *_identity(run),
        ]
    )
    switched, replaced = posture.switched(adapter.posture, composed)
    return tuple(_exempt_loopback(switched)), withheld + told + replaced


def _mapped(adapter: Adapter, delivery: Delivery, source: Source) -> Iterator[EnvEntry]:
    for rule in adapter.mapping:
        of_engine = rule.key in ENGINE_KEYS
        if isinstance(rule.target, EnvTarget) and of_engine is (source is Source.ENGINE):
            text = _content(rule, delivery)
            if text is not None:
                yield EnvEntry(rule.target.name, text, source, rule.key)


def _content(rule: Rule, delivery: Delivery) -> str | None:
    if rule.shape.template is None:
        delivery.typed(rule.key)  # refuses what is not of the key's type
        return delivery.text(rule.key)
    if delivery.value(rule.key) is None:
        return None
    filled = delivery.filled(rule)
    if filled is MISSING or isinstance(filled, str):
        return None if filled is MISSING else filled
    return json.dumps(filled, ensure_ascii=False, separators=(",", ":"))


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
