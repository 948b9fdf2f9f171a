"""`config get|set|unset` of one instance: the manifest room judges and writes, this file says it in JSON."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kt_ledger.layout import StateLayout
from kt_manifest.configuration import config_file, options, secrets, settings
from kt_manifest.configuration.layers import Entry
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import render
from kt_supervisor.engine.gateway import metering
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.problems import USAGE
from kt_supervisor.engine.run import launching

CHILDREN_NAMED = 8


class KeyNotSet(Exception):
    """Nothing is set under this key."""

    exit_code = USAGE


def get(
    files: StateLayout, name: str, *, key: str | None, reveal_with: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the effective settings, or one of them.

    Secrets are masked, unless the variables of whoever asks are given: then references are resolved as at a start.

    Raises:
        KeyNotSet: nothing under `key`; a table's first children are named. What `config_file.read` raises.
    """
    found = launching.entries(files.home(name))
    if key is not None:
        found = [entry for entry in found if entry.key == key] or _explain_missing(key, found)
    notices: list[str] = []
    shown = [_shown(entry, files, reveal_with, notices) for entry in found]
    return {"schema_version": 1, "entries": shown, "notices": notices}


async def set_value(
    files: StateLayout, instance: Instance, *, key: str, value: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Check a value and keep it; raises what `settings.check` and `config_file.set` raise."""
    row = await instance.row()
    checked = settings.check(key, value)
    path = files.home(instance.name) / "config.toml"
    await asyncio.to_thread(_write, path, key, checked)
    adapter = Adapter.from_json(row.adapter)
    notices = _flag_warnings(adapter, key, checked) + _undelivered(adapter, key)
    notices += await _follow(instance, key, environment)
    return {"name": instance.name, "key": key, "value": settings.shown(key, checked), "notices": notices}


async def unset(files: StateLayout, instance: Instance, *, key: str) -> dict[str, Any]:
    """Forget a value. Raises KeyNotSet."""
    await instance.row()
    if not await asyncio.to_thread(config_file.unset, files.home(instance.name) / "config.toml", key):
        raise KeyNotSet(
            f"nothing to unset: got {key}, wanted a key that is set; `kt agent config get {instance.name}` lists them"
        )
    return {"name": instance.name, "key": key, "notices": await _follow(instance, key, {})}


def _write(path: Path, key: str, value: Any) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    config_file.set(path, key, value)


async def _follow(instance: Instance, key: str, environment: Mapping[str, str]) -> list[str]:
    return await instance.reconcile(environment) if key in metering.KEYS else []


def _undelivered(adapter: Adapter, key: str) -> list[str]:
    """Say that nothing receives a setting that only a mapping delivers."""
    if key not in options.BY_MAPPING or adapter.maps(key):
        return []
    return [
        f"{key} reaches nobody: the adapter (kind {adapter.kind}) maps it nowhere; a variable of the agent is set with "
        "agent.NAME"
    ]


def _flag_warnings(adapter: Adapter, key: str, value: Any) -> list[str]:
    told = render.exposure(adapter, key) if secrets.is_reference(value) else None
    return [] if told is None else [told]


def _shown(
    entry: Entry, files: StateLayout, reveal_with: Mapping[str, str] | None, notices: list[str]
) -> dict[str, Any]:
    value = settings.shown(entry.key, entry.value)
    if reveal_with is not None:
        value = entry.value
        if isinstance(value, str) and secrets.is_reference(value):
            try:
                value = secrets.resolve(value, environment=reveal_with, secrets_file=files.secrets)
            except secrets.SecretUnresolved as error:
                value = secrets.MASK
                notices.append(str(error))
    return {"key": entry.key, "value": value, "source": entry.source, "unvalidated": entry.unvalidated}


def _explain_missing(key: str, found: list[Entry]) -> list[Entry]:
    below = [entry.key for entry in found if entry.key.startswith(f"{key}.")]
    if below:
        more = ", ..." if len(below) > CHILDREN_NAMED else ""
        raise KeyNotSet(
            f"{key} is a table: wanted one of its keys: {', '.join(below[:CHILDREN_NAMED])}{more}"
        )
    if key not in options.BY_KEY and not key.startswith(options.PASS_THROUGH):
        raise settings.UnknownKey(key)
    if key in options.BY_KEY and options.BY_KEY[key].effect is options.Effect.NOT_YET:
        raise KeyNotSet(f"{key} is not set, and cannot be yet: wanted a key that this version acts on")
    raise KeyNotSet(f"{key} is not set: wanted a key with a value; set it with `kt agent config set`")
