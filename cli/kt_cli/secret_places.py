"""Which secrets there are, where each is found, and who refers to it: read from the files, without an engine."""

from collections.abc import Mapping
from typing import Any

from kt_ledger.layout import StateLayout
from kt_manifest.configuration import config_file, keychain, options, secret_syntax, secrets_file
from kt_manifest.configuration.value_types import Value

FLEET = "(fleet)"
"""Stands for the settings of all agents, in the file `fleet_config`."""

Users = dict[str, list[dict[str, Any]]]


def look(
    files: StateLayout, variables: Mapping[str, str], *, registered: frozenset[str] | None
) -> dict[str, Any]:
    """Return `{secrets, keyring, notices}`; no value is in it.

    Args:
        files: the state directory.
        variables: the environment of whoever asks, which a start from the same shell would have.
        registered: the names of the agents, where they are known; else every Agent Home counts.

    Raises:
        SecretsFileUnusable: `secrets.toml` may not be used.
    """
    kept = secrets_file.entries(files.secrets)
    notices = [
        f"{name} in {files.secrets.name} is no text, or empty: it counts as absent"
        for name, value in kept.items()
        if value is None
    ]
    using, faults = _users(files, registered)
    asked = keychain.find(sorted(using)) if using else keychain.Answer(frozenset())
    found = []
    for name in sorted({*using, *(name for name, value in kept.items() if value is not None)}):
        places = {
            "environment": bool(variables.get(name)),
            files.secrets.name: kept.get(name) is not None,
            "keyring": name in asked.found,
        }
        there = [place for place, is_there in places.items() if is_there]
        values = {variables.get(name) or None, kept.get(name), asked.found.get(name) or None} - {None}
        agents = using.get(name, [])
        found.append(
            {
                "name": name,
                "found_in": there,
                "wins": there[0] if there else None,
                "differ": len(values) > 1,
                "agents": agents,
                "missing": bool(agents) and not there,
            }
        )
    return {"secrets": found, "keyring": asked.trouble or "ok", "notices": [*notices, *faults]}


def users(files: StateLayout, *, registered: frozenset[str] | None) -> Users:
    """Return who refers to each secret, and by which keys."""
    return _users(files, registered)[0]


def _users(files: StateLayout, registered: frozenset[str] | None) -> tuple[Users, list[str]]:
    found: Users = {}
    faults: list[str] = []
    for name, settings in _settings(files, registered, faults):
        keys: dict[str, list[str]] = {}
        for key, value in settings.items():
            for wanted in secret_syntax.names_in(value):
                keys.setdefault(wanted, []).append(key)
        for wanted, by in keys.items():
            at_once = options.UPSTREAM_API_KEY in by
            found.setdefault(wanted, []).append({"name": name, "keys": sorted(set(by)), "at_once": at_once})
    return found, faults


def _settings(
    files: StateLayout, registered: frozenset[str] | None, faults: list[str]
) -> list[tuple[str, Mapping[str, Value]]]:
    homes = files.homes
    names = sorted(path.name for path in homes.iterdir()) if homes.is_dir() else []
    chosen = [name for name in names if registered is None or name in registered]
    places = [
        (FLEET, files.fleet_config),
        *((name, files.home(name) / config_file.NAME) for name in chosen),
    ]
    read: list[tuple[str, Mapping[str, Value]]] = []
    for name, path in places:
        try:
            read.append((name, config_file.read(path)))
        except (config_file.MalformedLayer, config_file.LayerUnavailable) as error:
            faults.append(f"what {name} refers to is not known: {error}")
    return read
