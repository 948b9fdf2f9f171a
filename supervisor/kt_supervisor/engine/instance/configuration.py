"""`config get` and `diff`, of one instance or of the fleet: what is set, where it comes from, what would change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kt_ledger.exit_codes import USAGE
from kt_ledger.layout import StateLayout
from kt_ledger.records import LIVE_STATES
from kt_manifest.configuration import clear_keys, layers, options, secrets, settings
from kt_manifest.configuration.layers import Entry
from kt_manifest.configuration.value_types import Value
from kt_supervisor.engine.gateway import metering
from kt_supervisor.engine.instance import memory_folder
from kt_supervisor.engine.instance.current_settings import Settings
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run.run_settings import Started
from kt_supervisor.engine.telling.launch_view import HIDDEN_PART

CHILDREN_NAMED = 8
_REFUSED = "so that the next start is refused"
_IN_FORCE = "in force already"


class KeyNotSet(Exception):
    """Nothing is set under this key."""

    exit_code = USAGE


@dataclass(frozen=True, slots=True)
class Injected:
    """What the engine delivers to a live Run: as it is shown, and as it is."""

    key: str
    shown: str
    value: str = field(repr=False)


def get(
    parts: Parts, instance: Instance | None, *, key: str | None, reveal_with: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the effective settings of an instance (None: of the fleet), or one of them.

    Secrets are masked, unless the variables of whoever asks are given: then references are resolved as at a start.

    Raises:
        KeyNotSet: nothing under `key`; a table's first children are named. LayerFault, MalformedLayer,
            LayerUnavailable: what is under `key` cannot be used, or nobody knows.
    """
    found = parts.settings.of_fleet() if instance is None else parts.settings.of(instance.name)
    given = [] if instance is None else injected(parts, instance)
    notices: list[str] = []
    documents = {one.key: _injected(one, reveal=reveal_with is not None) for one in given}
    asked = _asked(found, key, documents, None if instance is None else instance.name)
    told = [_shown(entry, found, parts.files, reveal_with, notices) for entry in asked]
    told += [document for name, document in documents.items() if key in (None, name)]
    return {
        "schema_version": 1,
        "entries": sorted(told, key=lambda one: str(one["key"])),
        "alarms": [alarm.to_json() for alarm in found.alarms],
        "notices": notices,
    }


def diff(parts: Parts, instance: Instance) -> dict[str, Any]:
    """Return how the next start of the instance differs from its last.

    Raises:
        MalformedLayer, LayerUnavailable: a start would be refused for that.
    """
    row = parts.settings.row(instance.name)
    started = None if row is None else parts.settings.started(row)
    entries = () if row is None else parts.settings.for_a_fresh_start(row)
    current = {entry.key: entry for entry in entries}
    before = Started("") if started is None else started
    known = before.values.keys() | before.digests.keys() | current.keys()
    refused = {fault.key for fault in layers.faults(entries)}
    changes = [
        _change(key, before, current.get(key), is_refused=key in refused)
        for key in sorted(known)
        if not before.has(key, current[key].value if key in current else None)
    ]
    return {
        "schema_version": 1,
        "name": instance.name,
        "run_id": before.run_id or None,
        "live": row is not None and row.state in LIVE_STATES,
        "changes": [] if started is None else changes,
        "alarms": [alarm.to_json() for alarm in parts.settings.of(instance.name).alarms],
        "notices": []
        if started is not None
        else [f"{instance.name} was never started: there is nothing to compare with"],
    }


def injected(parts: Parts, instance: Instance) -> list[Injected]:
    """Return what the engine delivers to the Run under way, were its adapter to map all of it."""
    row, current = parts.settings.row(instance.name), instance.current
    if row is None or current is None or row.state not in LIVE_STATES:
        return []
    started = parts.settings.started(row)
    values = {} if started is None or started.run_id != row.run_id else started.values
    url, port = values.get(options.UPSTREAM_BASE_URL), parts.listeners.port(instance.id)
    found = []
    if isinstance(url, str) and port is not None:
        # The address behind a reference is nobody's to tell, nor is its path.
        path = url if not secrets.refers(url) else ""
        token = current.run.token
        found = [
            Injected(
                options.BASE_URL,
                metering.base_url(port, HIDDEN_PART, path),
                metering.base_url(port, token, path),
            ),
            Injected(options.ORIGIN, metering.origin(port, HIDDEN_PART), metering.origin(port, token)),
        ]
    if row.memory == memory_folder.FILESYSTEM:
        place = str(parts.files.home(instance.name) / memory_folder.FOLDER)
        found.append(Injected(options.MEMORY_DIR, place, place))
    return found


def _asked(
    found: Settings, key: str | None, injected_ones: Mapping[str, Any], name: str | None
) -> Sequence[Entry]:
    if key is None:
        return found.entries
    if key in injected_ones:
        return ()
    if (why := found.doubt(key)) is not None:
        raise why
    return [entry for entry in found.entries if entry.key == key] or _explain_missing(
        key, found.entries, name
    )


def _explain_missing(key: str, found: Sequence[Entry], name: str | None) -> list[Entry]:
    below = layers.children(found, key)
    if below:
        more = ", ..." if len(below) > CHILDREN_NAMED else ""
        raise KeyNotSet(
            f"got {key}, which is a table, wanted one of its keys: {', '.join(below[:CHILDREN_NAMED])}{more}"
        )
    if key not in options.BY_KEY and not key.startswith(options.PASS_THROUGH):
        raise settings.UnknownKey(key)
    effect = options.BY_KEY[key].effect if key in options.BY_KEY else None
    if effect is options.Effect.NOT_YET:
        raise KeyNotSet(f"{key} is not set, and cannot be yet: wanted a key that this version acts on")
    if effect is options.Effect.BY_THE_ENGINE:
        raise KeyNotSet(
            f"{key} is not set: the engine delivers it to a Run that lives; wanted one that has it"
        )
    verb = "kt config set" if name is None else f"kt agent config set {name}"
    raise KeyNotSet(f"{key} is not set: wanted a key with a value; set it with `{verb} {key} VALUE`")


def _shown(
    entry: Entry,
    found: Settings,
    files: StateLayout,
    reveal_with: Mapping[str, str] | None,
    notices: list[str],
) -> dict[str, Any]:
    value = _value(entry.key, entry.value, files, reveal_with, notices)
    document: dict[str, Any] = {"key": entry.key, "value": value}
    document |= {"source": entry.source, "unvalidated": entry.unvalidated}
    if entry.file is not None:
        document["file"] = str(entry.file)
    if entry.hides:
        document["hides"] = [
            {
                "key": weaker.key,
                "value": _value(weaker.key, weaker.value, files, reveal_with, notices),
                "source": weaker.source,
            }
            for weaker in entry.hides
        ]
    if entry.key in found.faults:
        document["fault"] = str(found.faults[entry.key])
    return document


def _value(
    key: str,
    value: Value,
    files: StateLayout,
    reveal_with: Mapping[str, str] | None,
    notices: list[str],
) -> Value:
    if reveal_with is None:
        return settings.shown(key, value)
    try:
        return secrets.resolve(value, environment=reveal_with, secrets_file=files.secrets)
    except secrets.SecretUnresolved as error:
        notices.append(str(error))
        return settings.shown(key, value)


def _injected(one: Injected, *, reveal: bool) -> dict[str, Any]:
    value = one.value if reveal else one.shown
    return {
        "key": one.key,
        "value": value,
        "source": layers.INVOCATION_OVERRIDE,
        "unvalidated": False,
        "injected": True,
    }


def _change(key: str, before: Started, entry: Entry | None, *, is_refused: bool) -> dict[str, Any]:
    option = options.BY_KEY.get(key)
    at_once = key in options.LIVE and key not in before.overrides
    if key in before.digests:
        then: Value | None = clear_keys.MASK
    else:
        then = None if key not in before.values else settings.shown(key, before.values[key])
    return {
        "key": key,
        "from": then,
        "to": None if entry is None else settings.shown(key, entry.value),
        "source": None if entry is None else entry.source,
        "effect": _REFUSED if is_refused else _IN_FORCE if at_once else str(options.Effect.NEXT_START),
        "unvalidated": option is None,
    }
