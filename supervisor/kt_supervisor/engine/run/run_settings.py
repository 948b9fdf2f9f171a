"""With which settings an instance was last started, kept so that a restart begins with the same overrides.

Laws: 0600 from birth, in a folder of 0700, replaced whole or not at all, gone with the instance. References stay
references; of a key that stands in a setting itself only a digest is kept, which tells whether it has changed.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kt_ledger import durable
from kt_ledger.layout import StateLayout
from kt_manifest.configuration import clear_keys, layers, secrets
from kt_manifest.configuration.layers import Entry
from kt_manifest.configuration.value_types import Value

logger = logging.getLogger(__name__)

VERSION = 1


@dataclass(frozen=True, slots=True)
class Started:
    """What a Run was started with: `overrides` by its `start`, `values` all in effect, `digests` in place of keys."""

    run_id: str
    overrides: Mapping[str, Value] = field(default_factory=dict, repr=False)
    values: Mapping[str, Value] = field(default_factory=dict, repr=False)
    digests: Mapping[str, str] = field(default_factory=dict)

    def has(self, key: str, value: Value | None) -> bool:
        """Tell whether the Run was started with this value; None stands for unset."""
        if key in self.digests:
            return value is not None and self.digests[key] == _digest(self.run_id, value)
        return self.values.get(key) == value


def is_key(name: str, value: Value) -> bool:
    """Tell whether a setting holds a key in the clear, which nothing of ours keeps or tells."""
    return clear_keys.is_named(name) and not secrets.is_reference(value)


def store(files: StateLayout, instance_id: str, run_id: str, entries: Iterable[Entry]) -> None:
    """Keep with what a Run is started. Raises OSError: what was kept before is still there."""
    merged = list(entries)
    override = layers.INVOCATION_OVERRIDE
    document = {
        "schema_version": VERSION,
        "run_id": run_id,
        "overrides": {entry.key: entry.value for entry in merged if entry.source == override},
        "values": {entry.key: entry.value for entry in merged if not is_key(entry.key, entry.value)},
        "digests": {
            entry.key: _digest(run_id, entry.value) for entry in merged if is_key(entry.key, entry.value)
        },
    }
    path = files.started(instance_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.replace_file(path, json.dumps(document, indent=1, sort_keys=True).encode() + b"\n")


def load(files: StateLayout, instance_id: str) -> Started | None:
    """Return with what it was last started; None where it never was, or where that cannot be read."""
    path = files.started(instance_id)
    try:
        return _started(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        logger.warning("%s is not used: %s", path, type(error).__name__)
        return None


def forget(files: StateLayout, instance_id: str) -> None:
    """Remove what is kept of an instance that is removed. Raises OSError."""
    files.started(instance_id).unlink(missing_ok=True)


def _started(document: dict[str, Any]) -> Started:
    if document["schema_version"] != VERSION:
        raise ValueError(document["schema_version"])
    values, overrides, digests = document["values"], document["overrides"], document["digests"]
    for value in (*values.values(), *overrides.values()):
        if not all(isinstance(text, str) for text in (value if isinstance(value, list) else [value])):
            raise TypeError(value)
    return Started(str(document["run_id"]), dict(overrides), dict(values), dict(digests))


def _digest(run_id: str, value: Value) -> str:
    return hashlib.sha256(json.dumps([run_id, value]).encode()).hexdigest()
