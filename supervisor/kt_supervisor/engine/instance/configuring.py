"""`config set`, `unset` and `edit`: a layer's file changed through us, and everything that follows from that.

Law: judged as a whole before anything is written; a refusal leaves the file as it was.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_ledger.exit_codes import USAGE
from kt_manifest.configuration import clear_keys, config_file, layer_text, layers, options, secrets, settings
from kt_manifest.configuration.layers import Layer, LayerFault
from kt_manifest.configuration.value_types import Value, as_typed
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import inheritance, render
from kt_supervisor.engine.gateway import metering
from kt_supervisor.engine.instance.configuration import KeyNotSet
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run import undelivered


@dataclass(frozen=True, slots=True)
class Place:
    """Whose settings are changed: those of one instance, or of all (`instance` None); `everyone` has to follow."""

    file: Path
    instance: Instance | None
    everyone: Sequence[Instance] = ()

    @property
    def layer(self) -> str:
        """The layer that the file is."""
        return layers.FLEET if self.instance is None else layers.INSTANCE

    @property
    def verb(self) -> str:
        """How its `config` is called."""
        return "kt config" if self.instance is None else "kt agent config"

    @property
    def facts(self) -> dict[str, Any]:
        """What an answer says of it."""
        return {"name": None if self.instance is None else self.instance.name, "layer": self.layer}


class EditRefused(Exception):
    """An edited file holds something that cannot be used; every fault of it is told."""

    exit_code = USAGE

    def __init__(self, faults: Sequence[LayerFault]) -> None:
        self.faults = faults
        lines = "\n".join(f"  {fault.error}" for fault in faults)
        super().__init__(f"the file is not taken, and nothing was changed:\n{lines}")


def place(parts: Parts, instance: Instance | None, everyone: Sequence[Instance]) -> Place:
    """Return whose settings are meant."""
    if instance is None:
        return Place(parts.files.fleet_config, None, everyone)
    return Place(parts.files.home(instance.name) / config_file.NAME, instance, [instance])


async def set_value(
    parts: Parts, where: Place, *, key: str, value: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Check a value and keep it; raises what `settings.check` and `config_file.set` raise."""
    if where.instance is not None:
        await where.instance.row()
    checked = settings.check(key, value)
    before = await asyncio.to_thread(_write, where.file, key, checked)
    notices = _replaced(key, before, checked) + _of_value(where, key, checked, typed=True)
    notices += _of_adapter(parts, where, key, checked)
    notices += _hidden(parts, where, key)
    notices += await _follow(where, {key}, environment)
    facts = {**where.facts, "key": key, "value": settings.shown(key, checked)}
    return {**facts, "effect": settings.takes_effect(key), "notices": notices}


async def unset(where: Place, *, key: str) -> dict[str, Any]:
    """Forget a value. Raises KeyNotSet."""
    if where.instance is not None:
        await where.instance.row()
    if not await asyncio.to_thread(config_file.unset, where.file, key):
        whose = "" if where.instance is None else f" {where.instance.name}"
        raise KeyNotSet(
            f"nothing to unset: got {key}, wanted a key that is set in {where.file}; `{where.verb} get{whose}` lists "
            "what is set, and where"
        )
    notices = await _follow(where, {key}, {})
    return {**where.facts, "key": key, "effect": settings.takes_effect(key), "notices": notices}


async def text(where: Place) -> dict[str, Any]:
    """Return a layer's file as it is, for an editor. Raises as `config_file.text`."""
    found = await asyncio.to_thread(config_file.text, where.file)
    return {**where.facts, "file": str(where.file), "text": found}


async def replace(
    parts: Parts, where: Place, *, wanted: str, was: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Put an edited text in the place of the one that was read; raises EditRefused, and as `config_file.replace`."""
    if where.instance is not None:
        await where.instance.row()
    values = await asyncio.to_thread(_judged, where, wanted)
    await asyncio.to_thread(_make_folder, where.file)
    await asyncio.to_thread(config_file.replace, where.file, wanted, was=was)
    try:
        before = layer_text.read(where.file, was)
    except config_file.MalformedLayer:
        before = {}
    changed = sorted(key for key in before.keys() | values.keys() if before.get(key) != values.get(key))
    notices = []
    for key in sorted(values.keys() & set(changed)):
        notices += _of_value(where, key, values[key], typed=False) + _of_adapter(
            parts, where, key, values[key]
        )
    notices += await _follow(where, set(changed), environment)
    return {**where.facts, "changed": changed, "notices": notices}


def check_overrides(given: Mapping[str, str]) -> dict[str, Value]:
    """Return the settings of one start. Raises what `settings.check` raises, and ShapeConflict."""
    checked: dict[str, Value] = {}
    for key, value in given.items():
        found = settings.check(key, value)
        if clear_keys.is_clear(key, found) or (key in options.SENSITIVE and not secrets.is_reference(found)):
            raise settings.InvalidValue(
                key, got="a key (not shown) for one start, which others can see", wanted="secret:NAME"
            )
        checked[key] = found
    for key in checked:
        for above in layers.ancestors(key):
            if above in checked:
                raise config_file.ShapeConflict(key, above)
    return checked


def _judged(where: Place, wanted: str) -> dict[str, Value]:
    values = layer_text.read(where.file, wanted)
    faults = layers.faults(layers.merge([Layer(where.layer, values, where.file)]))
    if faults:
        raise EditRefused(faults)
    return values


def _write(path: Path, key: str, value: Value) -> Value | None:
    _make_folder(path)
    return config_file.set(path, key, value)


def _make_folder(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def _replaced(key: str, before: Value | None, now: Value) -> list[str]:
    """Tell what was there: of two who set the same, the last learns of the first."""
    if before is None or before == now:
        return []
    if settings.shown(key, before) == settings.shown(key, now):
        return [f"{key} had another value, which is replaced"]
    return [f"{key} was {_in_words(settings.shown(key, before))}"]


def _in_words(value: Value) -> str:
    return value if isinstance(value, str) else as_typed(value)


def _of_value(where: Place, key: str, value: Value, *, typed: bool) -> list[str]:
    """Tell what a value means that is right, and may not be meant."""
    told = clear_keys.notice(key, value, file=where.file.name, typed=typed)
    if key == options.ENV_INHERIT and not value:
        told.append(
            f"{key} is empty: nothing is inherited, not even PATH; {inheritance.DEFAULTS} stands for what is inherited "
            "where it is unset"
        )
    return told


def _hidden(parts: Parts, where: Place, key: str) -> list[str]:
    """Tell of the agents whose own settings hide what was just set for all."""
    if where.instance is not None:
        return []
    found = {each.name: parts.settings.of(each.name).entries for each in where.everyone}
    hiding = sorted(
        name
        for name, entries in found.items()
        for entry in entries
        if entry.key == key and layers.STRENGTH.index(entry.source) > layers.STRENGTH.index(layers.FLEET)
    )
    return [f"{key} is set for {', '.join(hiding)} itself, which wins"] if hiding else []


async def _follow(where: Place, keys: set[str], environment: Mapping[str, str]) -> list[str]:
    if not keys & metering.KEYS:
        return []
    notices = []
    for instance in where.everyone:
        try:
            notices += await instance.reconcile(environment)
        except Exception as error:
            if where.instance is not None:
                raise
            # What is wrong with one agent's own settings is that agent's alarm, and keeps no other from following.
            notices.append(f"{instance.name} does not follow: {error}")
    return notices


def _of_adapter(parts: Parts, where: Place, key: str, value: Value) -> list[str]:
    row = None if where.instance is None else parts.settings.row(where.instance.name)
    if row is None:
        return []
    adapter = Adapter.from_json(row.adapter)
    exposed = render.exposures(adapter, render.secret_settings({key: value}))
    return [*exposed, *undelivered.notices(adapter, [key])]
