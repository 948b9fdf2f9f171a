"""Four layers of settings, weak to strong, merged leaf by leaf, and where each value came from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kt_manifest.configuration import options, settings
from kt_manifest.configuration.value_types import Value

ENGINE_DEFAULT = "engine-default"
KIND_DEFAULT = "kind-default"
INSTANCE = "instance"
INVOCATION_OVERRIDE = "invocation-override"
STRENGTH = (ENGINE_DEFAULT, KIND_DEFAULT, INSTANCE, INVOCATION_OVERRIDE)


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one layer by dotted key; `name` is one of `STRENGTH`."""

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One effective setting: the layer that it came from, and whether kt knows its type at all."""

    key: str
    value: Value
    source: str
    unvalidated: bool


def engine_default() -> Layer:
    """Return the defaults of the settings that take effect."""
    acted_on = (options.Effect.NEXT_START, options.Effect.AT_ONCE)
    effective_ones = [option for option in options.OPTIONS if option.effect in acted_on]
    return Layer(
        ENGINE_DEFAULT,
        {option.key: option.default for option in effective_ones if option.default is not None},
    )


def merge(layers: Sequence[Layer]) -> list[Entry]:
    """Return the effective settings in the order of their keys, whatever the order of the layers.

    The strongest layer that has a key wins. Where shapes differ (`agent.A` here, `agent.A.B` there), the stronger
    shape removes the weaker one: a value and values below it never appear together.
    """
    merged: dict[str, tuple[Value, str]] = {}
    for layer in sorted(layers, key=lambda layer: STRENGTH.index(layer.name)):
        _prune(merged, layer.values)
        merged.update({key: (value, layer.name) for key, value in layer.values.items()})
    return [
        Entry(key, value, source, settings.is_unvalidated(key))
        for key, (value, source) in sorted(merged.items())
    ]


def effective(entries: Iterable[Entry]) -> dict[str, Value]:
    """Return the settings that a start uses, each of them checked, however it came into the file.

    Nothing is silently ignored: a limit that was written by hand and that nothing enforces refuses the start.

    Raises:
        What `settings.check` raises, for a value of the instance's own layer.
    """
    return {
        entry.key: settings.check_stored(entry.key, entry.value) if entry.source == INSTANCE else entry.value
        for entry in entries
    }


def children(entries: Iterable[Entry], prefix: str) -> list[str]:
    """Return the keys below `prefix`, in order: what a question for a table rather than a key is answered with."""
    return sorted(entry.key for entry in entries if entry.key.startswith(prefix + "."))


def _prune(merged: dict[str, tuple[Value, str]], stronger: Mapping[str, Value]) -> None:
    above = {ancestor for key in stronger for ancestor in _ancestors(key)}
    for key in list(merged):
        if key in above or any(ancestor in stronger for ancestor in _ancestors(key)):
            del merged[key]


def _ancestors(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]
