"""Five layers of settings, weak to strong, merged leaf by leaf, and where each value came from.

What people write by hand is judged here as well: a fault is a value (`Fault`), so that whoever shows settings can show
what is wrong with them, and whoever starts an agent can refuse.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kt_manifest import words
from kt_manifest.configuration import options, settings
from kt_manifest.configuration.value_types import Value

ENGINE_DEFAULT = "engine-default"
KIND_DEFAULT = "kind-default"
FLEET = "fleet"
INSTANCE = "instance"
INVOCATION_OVERRIDE = "invocation-override"
STRENGTH = (ENGINE_DEFAULT, KIND_DEFAULT, FLEET, INSTANCE, INVOCATION_OVERRIDE)
JUDGED = frozenset({KIND_DEFAULT, FLEET, INSTANCE})
"""The layers that somebody may have written otherwise than through us, or for another version."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one layer by dotted key; `name` is one of `STRENGTH`, `file` where it is kept, if in one."""

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Hidden:
    """A value that a stronger layer hides; its key is another one where the shapes differ."""

    key: str
    value: Value
    source: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One effective setting: the layer that it came from, and whether kt knows its type at all.

    `hides` are the weaker values in its place, the strongest first.
    """

    key: str
    value: Value
    source: str
    unvalidated: bool
    file: Path | None = None
    hides: tuple[Hidden, ...] = ()


class LayerFault(Exception):
    """A setting in a file, or of an adapter, cannot be used; the message says which one, why, and where it stands."""

    def __init__(self, entry: Entry, error: Exception) -> None:
        self.key = entry.key
        self.source = entry.source
        self.error = error
        self.exit_code: int = getattr(error, "exit_code", 1)
        where = f"{words.shown_path(entry.file)} ({entry.source})" if entry.file else f"layer {entry.source}"
        super().__init__(f"{error}; it stands in {where}")


def engine_default() -> Layer:
    """Return the defaults of the settings that take effect."""
    return _ENGINE_DEFAULT


def merge(layers: Sequence[Layer]) -> list[Entry]:
    """Return the effective settings in the order of their keys, whatever the order of the layers.

    The strongest layer that has a key wins. Where shapes differ (`agent.A` here, `agent.A.B` there), the stronger
    shape removes the weaker one: a value and values below it never appear together.
    """
    merged: dict[str, Entry] = {}
    for layer in sorted(layers, key=lambda layer: STRENGTH.index(layer.name)):
        pruned = _prune(merged, layer.values)
        for key, value in layer.values.items():
            hides = _hidden(merged[key]) if key in merged else ()
            hides = (*pruned.get(key, ()), *hides)
            merged[key] = Entry(key, value, layer.name, settings.is_unvalidated(key), layer.file, hides)
    return [merged[key] for key in sorted(merged)]


def faults(entries: Iterable[Entry]) -> list[LayerFault]:
    """Return what is wrong with effective settings, in the order of their keys."""
    return [fault for entry in entries if (fault := _judged(entry)[1]) is not None]


def effective(entries: Iterable[Entry]) -> dict[str, Value]:
    """Return the settings that a start uses, each of them checked, however it came into the file.

    Nothing is silently ignored: a limit that was written by hand and that nothing enforces refuses the start.

    Raises:
        LayerFault: the first that cannot be used.
    """
    values: dict[str, Value] = {}
    for entry in entries:
        value, fault = _judged(entry)
        if fault is not None:
            raise fault
        values[entry.key] = value
    return values


def usable(entries: Iterable[Entry]) -> tuple[dict[str, Value], list[LayerFault]]:
    """Return the settings that can be used, and what is wrong with the others."""
    judged = [(entry.key, *_judged(entry)) for entry in entries]
    values = {key: value for key, value, fault in judged if fault is None}
    return values, [fault for _, _, fault in judged if fault is not None]


def children(entries: Iterable[Entry], prefix: str) -> list[str]:
    """Return the keys below `prefix`, in order: what a question for a table rather than a key is answered with."""
    return sorted(entry.key for entry in entries if entry.key.startswith(prefix + "."))


def ancestors(key: str) -> list[str]:
    """Return the keys that a key would stand below, were they tables."""
    parts = key.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _judged(entry: Entry) -> tuple[Value, LayerFault | None]:
    if entry.source not in JUDGED:
        return entry.value, None
    try:
        return settings.check_stored(entry.key, entry.value), None
    except (
        settings.UnknownKey,
        settings.ReservedKey,
        settings.NotEnforcedYet,
        settings.InvalidValue,
    ) as error:
        return entry.value, LayerFault(entry, error)


def _hidden(entry: Entry) -> tuple[Hidden, ...]:
    return (Hidden(entry.key, entry.value, entry.source), *entry.hides)


def _prune(merged: dict[str, Entry], stronger: Mapping[str, Value]) -> dict[str, tuple[Hidden, ...]]:
    """Remove what differs in shape from a stronger layer; return what each of its keys hides by that."""
    below: dict[str, str] = {}
    for key in stronger:
        for ancestor in ancestors(key):
            below.setdefault(ancestor, key)
    hidden: dict[str, tuple[Hidden, ...]] = {}
    for key in list(merged):
        by = below.get(key) or next((above for above in ancestors(key) if above in stronger), None)
        if by is not None:
            hidden[by] = (*hidden.get(by, ()), *_hidden(merged.pop(key)))
    return hidden


def _defaults() -> Layer:
    acted_on = (options.Effect.NEXT_START, options.Effect.AT_ONCE)
    effective_ones = [option for option in options.OPTIONS if option.effect in acted_on]
    return Layer(
        ENGINE_DEFAULT,
        {option.key: option.default for option in effective_ones if option.default is not None},
    )


_ENGINE_DEFAULT = _defaults()
