"""Rendering an agent's own configuration file: TOML, every value text or an array of texts."""

from collections.abc import Iterable
from typing import Any

from kt_manifest.configuration.value_types import Value


def toml(pairs: Iterable[tuple[str, Value]]) -> str:
    """Return the document with each value at its dotted key, in order of the pairs.

    The keys do not clash: a manifest in which one key stands below another's value is refused.
    """
    # Imported late: a start needs it, and reading a manifest or a setting does not.
    import tomlkit

    document: dict[str, Any] = {}
    for key, value in pairs:
        node = document
        *parents, last = key.split(".")
        for name in parents:
            node = node.setdefault(name, {})
        node[last] = value
    return tomlkit.dumps(document)
