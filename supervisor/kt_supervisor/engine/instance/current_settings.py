"""The settings of every instance as they are now: the one place that reads, merges and judges them.

Laws: whoever in the engine acts on a setting asks here; nothing else reads a layer's file for what is in force.
`configuring` reads the text that it replaces. What works without an engine (the doctor, the list of secrets) looks at
the files for what stands in them, and merges nothing. What somebody wrote wrongly by hand is an alarm, and never means
its default or no limit: where it takes effect at once, the last value that could be used stays in force.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kt_ledger.clock import Clock
from kt_ledger.layout import StateLayout
from kt_ledger.records import LIVE_STATES, InstanceRow
from kt_manifest.configuration import config_file, layers, options, settings
from kt_manifest.configuration.layers import Entry, Layer, LayerFault
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter
from kt_supervisor.engine.instance.layer_files import Kept, LayerFile, read_layer
from kt_supervisor.engine.instance.restart_policy import History, Policy
from kt_supervisor.engine.run import run_settings
from kt_supervisor.engine.run.run_settings import Started

NO_OVERRIDES: Mapping[str, Value] = MappingProxyType({})
type Question = Callable[[InstanceRow], Sequence[Entry]]
"""One of `for_a_fresh_start`, `for_a_restart`, `of_the_run`: handed on by whoever knows what is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that cannot be used: where, which key (None: the whole file), why, and what is in force instead."""

    layer: str
    message: str
    key: str | None = None
    in_force: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as `show`, `list`, `config get` and events tell it."""
        return {"layer": self.layer, "key": self.key, "message": self.message + self.in_force}


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set at one moment: all effective entries, the values of those that can be used, and what cannot be."""

    entries: tuple[Entry, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    faults: Mapping[str, LayerFault] = field(default_factory=dict)
    broken: tuple[tuple[str, Exception], ...] = ()
    alarms: tuple[Alarm, ...] = ()

    def doubt(self, key: str) -> Exception | None:
        """Return why the value of a key is not known: it, or a file that may hold it, cannot be used.

        A broken value in the place of a table (`limits = 5`) is one of all keys below it, and a table in the place of
        a value (`[limits.memory]`) of the key above: whatever weaker layers say of them is out of force by it.
        """
        if key in self.faults:
            return self.faults[key]
        is_value = key in options.BY_KEY
        for at, fault in self.faults.items():
            if key.startswith(at + ".") or (is_value and _in_one_place(at, key)):
                return fault
        source = next((entry.source for entry in self.entries if entry.key == key), layers.ENGINE_DEFAULT)
        strength = layers.STRENGTH.index(source)
        return next((why for layer, why in self.broken if layers.STRENGTH.index(layer) > strength), None)


class CurrentSettings:
    """Of all instances of one state directory; called from any thread."""

    def __init__(self, files: StateLayout, *, clock: Clock) -> None:
        """Begin with no instance; `know` tells of each."""
        self._files = files
        self._layers = Kept(clock, read_layer)
        self._rows: dict[str, InstanceRow] = {}
        self._started: dict[str, Started | None] = {}
        self._merged: dict[str, tuple[tuple[object, ...], Settings]] = {}
        self._good: dict[str, dict[str, Value | None]] = {}

    # -- whose -------------------------------------------------------------------------------------------------
    def know(self, row: InstanceRow) -> None:
        """Learn what the ledger says of an instance now; its name leads to it from here on."""
        before = self._rows.get(row.name)
        if before is not None and before.id != row.id:
            self.forget(row.name)
        self._rows[row.name] = row

    def restarts(self, name: str, document: Mapping[str, Any]) -> None:
        """Learn that the history of an instance's restarts has changed."""
        if name in self._rows:
            self._rows[name] = replace(self._rows[name], restart=dict(document))

    def forget(self, name: str) -> None:
        """Know nothing any more of an instance that was removed."""
        for known in (self._rows, self._started, self._merged, self._good):
            known.pop(name, None)

    def row(self, name: str) -> InstanceRow | None:
        """Return what was last learned of an instance."""
        return self._rows.get(name)

    def names(self) -> list[str]:
        """Return the instances that are known."""
        return sorted(self._rows)

    # -- what is set -------------------------------------------------------------------------------------------
    def of(self, name: str) -> Settings:
        """Return everything that is set for an instance now, an override of its Run included."""
        fleet, instance = (self._layers.read(path) for path in self._paths(name))
        row = self._rows.get(name)
        adapter = None if row is None else row.adapter
        started = self._in_force(name)
        key = (fleet, instance, adapter, started)
        kept = self._merged.get(name)
        if kept is not None and all(one is other for one, other in zip(kept[0], key, strict=True)):
            return kept[1]
        overrides = NO_OVERRIDES if started is None else started.overrides
        found = _judged(_layers(adapter, fleet, instance, overrides), (fleet, instance))
        good = self._keep_good(name, found)
        found = replace(found, alarms=tuple(_with_good(alarm, good) for alarm in found.alarms))
        self._merged[name] = (key, found)
        return found

    def of_fleet(self) -> Settings:
        """Return what is set for all instances: the defaults and the fleet's file."""
        fleet = self._layers.read(self._files.fleet_config)
        found = _judged([layers.engine_default(), _layer(layers.FLEET, fleet)], (fleet,))
        return replace(found, alarms=tuple(replace(alarm, in_force=_FOR_ALL) for alarm in found.alarms))

    # -- what is set, for a purpose: which overrides hold is decided here and nowhere else --------------------------
    def for_a_fresh_start(
        self, row: InstanceRow, overrides: Mapping[str, Value] = NO_OVERRIDES
    ) -> tuple[Entry, ...]:
        """Return what a `start` uses, not judged yet: the overrides that come with it, and no earlier ones.

        Raises:
            MalformedLayer, LayerUnavailable: a layer's file cannot be used.
        """
        return self._entries(row, overrides)

    def for_a_restart(self, row: InstanceRow) -> tuple[Entry, ...]:
        """Return what a `restart` uses, asked for or not: the last start's overrides hold; raises the same."""
        started = self.started(row)
        return self._entries(row, NO_OVERRIDES if started is None else started.overrides)

    def of_the_run(self, row: InstanceRow) -> tuple[Entry, ...]:
        """Return what holds for the Run that lives or is about to be brought back; raises the same.

        Without one there is nothing that its overrides could hold for: what is set in the files is all.
        """
        started = self._in_force(row.name)
        return self._entries(row, NO_OVERRIDES if started is None else started.overrides)

    def _entries(self, row: InstanceRow, overrides: Mapping[str, Value]) -> tuple[Entry, ...]:
        fleet, instance = (self._layers.read(path) for path in self._paths(row.name))
        for file in (fleet, instance):
            if file.error is not None:
                raise file.error
        return tuple(layers.merge(_layers(row.adapter, fleet, instance, overrides)))

    def started(self, row: InstanceRow) -> Started | None:
        """Return with what an instance was last started."""
        kept = self._started.get(row.name)
        if kept is None or kept.run_id != row.run_id:
            # Also while a start has not come so far: what is kept is that of an earlier Run until then.
            kept = run_settings.load(self._files, row.id)
            self._started[row.name] = kept
        return kept

    # -- settings that take effect at once ---------------------------------------------------------------------
    def live(self, name: str, key: str) -> Value | None:
        """Return the value in force of a setting that takes effect at once; None where it is unset.

        Raises:
            LayerFault, MalformedLayer, LayerUnavailable: it cannot be used, and no earlier value is known.
        """
        found = self.of(name)
        why = found.doubt(key)
        if why is None:
            return found.values.get(key)
        good = self._good_values(name)
        if key in good:
            return good[key]
        raise why

    def text(self, name: str, key: str) -> str:
        """Return the same for a setting that is one text and has a default."""
        return str(self.live(name, key))

    def is_on(self, name: str, key: str) -> bool:
        """Return the same for a switch."""
        return self.text(name, key) == "true"

    def restart_policy(self, name: str) -> Policy:
        """Return when an agent that ended by itself is brought back; raises as `live`."""
        keys = (
            options.RESTART_POLICY,
            options.RESTART_LIMIT,
            options.RESTART_WINDOW,
            options.RESTART_RESET_AFTER,
        )
        word, limit, window_s, reset_after_s = (self.text(name, key) for key in keys)
        return Policy(
            word=word, limit=int(limit), window_s=float(window_s), reset_after_s=float(reset_after_s)
        )

    # -- inside ------------------------------------------------------------------------------------------------
    def _paths(self, name: str) -> tuple[Path, Path]:
        return self._files.fleet_config, self._files.home(name) / config_file.NAME

    def _in_force(self, name: str) -> Started | None:
        """Return the start whose overrides hold: its Run lives, or is about to be brought back."""
        row = self._rows.get(name)
        if row is None:
            return None
        due = row.restart is not None and History.from_json(row.restart).due is not None
        if row.state not in LIVE_STATES and not due:
            return None
        started = self.started(row)
        return started if started is not None and started.run_id == row.run_id else None

    def _keep_good(self, name: str, found: Settings) -> Mapping[str, Value | None]:
        good = self._good_values(name)
        good |= {key: found.values.get(key) for key in options.LIVE if found.doubt(key) is None}
        return good

    def _good_values(self, name: str) -> dict[str, Value | None]:
        if name not in self._good:
            row = self._rows.get(name)
            started = None if row is None else self.started(row)
            known = {} if started is None else {key: started.values.get(key) for key in options.LIVE}
            self._good[name] = known
        return self._good[name]


_FOR_ALL = "; agents that run keep what was in force, and a start that it concerns is refused"


def _layers(
    adapter: str | None, fleet: LayerFile, instance: LayerFile, overrides: Mapping[str, Value]
) -> list[Layer]:
    defaults = {} if adapter is None else Adapter.from_json(adapter).defaults
    return [
        layers.engine_default(),
        Layer(layers.KIND_DEFAULT, defaults),
        _layer(layers.FLEET, fleet),
        _layer(layers.INSTANCE, instance),
        Layer(layers.INVOCATION_OVERRIDE, overrides),
    ]


def _layer(name: str, file: LayerFile) -> Layer:
    return Layer(name, file.values, file.path)


def _judged(given: list[Layer], files: tuple[LayerFile, ...]) -> Settings:
    entries = layers.merge(given)
    values, faults = layers.usable(entries)
    names = {layer.file: layer.name for layer in given if layer.file is not None}
    broken = [(names[file.path], file.error) for file in files if file.error is not None]
    alarms = [Alarm(layer=layer, message=str(error)) for layer, error in broken]
    alarms += [Alarm(layer=fault.source, key=fault.key, message=str(fault)) for fault in faults]
    by_key = {fault.key: fault for fault in faults}
    return Settings(tuple(entries), values, by_key, tuple(broken), tuple(alarms))


def _with_good(alarm: Alarm, good: Mapping[str, Value | None]) -> Alarm:
    """Say what is in force instead: the last good value of one key, or of all that take effect at once."""
    if alarm.key is None:
        return replace(alarm, in_force="; what takes effect at once stays as it was, and a start is refused")
    if alarm.key not in good:
        around = any(_in_one_place(alarm.key, key) for key in options.LIVE)
        kept = "; what takes effect at once there stays as it was, and" if around else ";"
        return replace(alarm, in_force=f"{kept} a start is refused until it is corrected")
    value = good[alarm.key]
    told = "unset" if value is None else settings.shown(alarm.key, value)
    return replace(alarm, in_force=f"; until it is corrected, {told} stays in force, and a start is refused")


def _in_one_place(one: str, other: str) -> bool:
    """Return whether one key stands below the other, so that a file can hold only one of them."""
    return one.startswith(other + ".") or other.startswith(one + ".")
