"""Which variables of its caller a start of an instance needs: said to the caller, who sends those and no others.

Names and beginnings of names; a value is neither asked for nor known here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kt_ledger.records import InstanceRow
from kt_manifest.configuration import layers, options, secrets
from kt_manifest.configuration.layers import Entry
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import inheritance
from kt_supervisor.engine.run import told_of_variables


def describe(row: InstanceRow, entries: Sequence[Entry], *, given: Mapping[str, str]) -> dict[str, Any]:
    """Return what is wanted.

    Args:
        row: the instance.
        entries: what is set for what is asked (`CurrentSettings`).
        given: settings that come with it; only an override of a start is stronger.
    """
    settings = {entry.key: entry.value for entry in entries} | dict(given)
    settings |= {entry.key: entry.value for entry in entries if entry.source == layers.INVOCATION_OVERRIDE}
    patterns = settings.get(options.ENV_INHERIT)
    listed = patterns.split() if isinstance(patterns, str) else patterns
    missing = told_of_variables.keys_left_out(row.name, Adapter.from_json(row.adapter), settings)
    return {
        "inherit": inheritance.rule(listed).to_json(),
        "secrets": sorted(secrets.names(settings.values())),
        # Said by the caller where it has such a variable: its name alone would have to be sent for us to say it.
        "remarks": missing,
    }


def describe_fleet(entries: Sequence[Entry], *, given: Mapping[str, str]) -> dict[str, Any]:
    """Return what of its caller's variables a change of the settings of all agents needs: secrets alone."""
    values = [*(entry.value for entry in entries), *given.values()]
    return {"inherit": {}, "secrets": sorted(secrets.names(values)), "remarks": {}}
