"""How an adapter's posture is shown: what it declares, in its own words, and what nobody declares as null. Pure."""

from typing import Any

from kt_manifest.contract.declared_posture import Isolation, Updates
from kt_manifest.contract.snapshot import Adapter


def document(adapter: Adapter) -> dict[str, Any] | None:
    """Return the `posture` of `kt agent show --json`; None for a kind that is no adapter of anybody's.

    A part that is not declared is null, which is not the same as "none": nobody says.
    """
    if adapter.contract_version is None:
        return None
    posture = adapter.posture
    return {
        "substitution": list(posture.substitution) or None,
        "isolation": None if posture.isolation is None else _isolation(posture.isolation),
        "updates": None if posture.updates is None else _updates(posture.updates),
        "version": None if posture.version is None else {"command": list(posture.version.command)},
    }


def _isolation(isolation: Isolation) -> dict[str, Any]:
    return {
        "directories": dict(isolation.env),
        "undocumented": list(isolation.undocumented),
        "validated": isolation.validated,
    }


def _updates(updates: Updates) -> dict[str, Any]:
    config = updates.config
    return {
        "never": updates.never,
        "env": dict(updates.env),
        "args": list(updates.args),
        "config": None if config is None else {"env": config.env, "key": config.key, "value": config.value},
        "switch": updates.switch,
        "managed_layer": updates.managed_layer,
        "verified": updates.verified,
    }
