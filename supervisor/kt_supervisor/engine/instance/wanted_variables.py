"""Which variables of its caller a start of an instance needs: said to the caller, who sends those and no others.

Names and beginnings of names; a value is neither asked for nor known here.
"""

from collections.abc import Mapping
from typing import Any

from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow
from kt_manifest.configuration import options, secrets
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import inheritance
from kt_supervisor.engine.run import launching


def describe(files: StateLayout, row: InstanceRow, *, given: Mapping[str, str]) -> dict[str, Any]:
    """Return what is wanted; raises as `launching.entries`.

    Args:
        files: the state directory.
        row: the instance.
        given: settings that come with the start, and win.
    """
    settings = {entry.key: entry.value for entry in launching.entries(files.home(row.name))} | dict(given)
    patterns = settings.get(options.ENV_INHERIT)
    listed = patterns.split() if isinstance(patterns, str) else patterns
    missing = launching.keys_left_out(row.name, Adapter.from_json(row.adapter), settings)
    return {
        "inherit": inheritance.rule(listed).to_json(),
        "secrets": sorted(secrets.names(settings.values())),
        # Said by the caller where it has such a variable: its name alone would have to be sent for us to say it.
        "remarks": missing,
    }
