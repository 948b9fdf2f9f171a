"""The environment of one Run: who sets a variable, who loses, and what is told of it. Pure.

Later wins, in this order: what is inherited from the caller, the adapter's own `env`, `agent.*` pass-through, settings
delivered by the mapping, and last what the engine itself delivers, so that no setting can lead an agent around its
meter by accident.
"""

import json
from collections.abc import Iterator, Mapping

from kt_manifest.configuration import options, secrets
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter, EnvTarget, Rule
from kt_manifest.launch.delivery import Delivery
from kt_manifest.launch.native.tree import MISSING
from kt_manifest.launch.run_facts import ENGINE_KEYS, RunFacts

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NO_PROXY_NAMES = ("NO_PROXY", "no_proxy")


def of(
    adapter: Adapter, values: Mapping[str, Value], run: RunFacts, delivery: Delivery
) -> tuple[dict[str, str], list[str]]:
    """Return the variables that the agent is started with, and what there is to tell about them."""
    env = dict(run.base_environment)
    notices = _withhold_key(env, values.get(options.UPSTREAM_API_KEY), run)
    inherited = dict(env)
    env.update(adapter.start.env if adapter.start else {})
    mapped = dict(_mapped(adapter, delivery, engine=False))
    passed = {
        key.removeprefix(options.PASS_THROUGH): (key, delivery.text(key) or "")
        for key in values
        if key.startswith(options.PASS_THROUGH)
    }
    injected = dict(_mapped(adapter, delivery, engine=True))
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


def _mapped(adapter: Adapter, delivery: Delivery, *, engine: bool) -> Iterator[tuple[str, tuple[str, str]]]:
    for rule in adapter.mapping:
        if isinstance(rule.target, EnvTarget) and (rule.key in ENGINE_KEYS) is engine:
            text = _content(rule, delivery)
            if text is not None:
                yield rule.target.name, (rule.key, text)


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
