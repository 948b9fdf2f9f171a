"""A provider's key that was changed while agents run: the gateway carries the new one from the next call on."""

import asyncio

from kt_ledger.records import InstanceRow, State
from kt_manifest.configuration import options, secrets
from kt_supervisor.engine.instance.restart_policy import History
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run import launching
from kt_supervisor.engine.run.current_run import CurrentRun

_PARKED = "{name} does not run, and refers to it: `kt agent start {name}` starts it with the new value"
_CALLS = frozenset({State.STARTING, State.RUNNING, State.PAUSED})


async def rekey(
    parts: Parts, row: InstanceRow, current: CurrentRun | None, names: frozenset[str]
) -> list[str] | None:
    """Tell the gateway; return what the operator should know, None where nothing of this instance is concerned.

    The caller holds the instance's lock. The setting is looked at as it holds for the Run now, an override of its start
    included: the key that it refers to is the one that the operator means.
    """
    if row.state is State.FAILED and History.from_json(row.restart).parked:
        return await _waits(parts, row, names)
    if row.state not in _CALLS or current is None:
        return None
    try:
        entries = await asyncio.to_thread(parts.settings.of_the_run, row)
        setting = secrets.names(entry.value for entry in entries if entry.key == options.UPSTREAM_API_KEY)
        if not setting & names:
            return None
        provider = await asyncio.to_thread(launching.provider, parts.files, entries, environment={})
    except Exception as error:
        # Whatever is wrong with one agent's settings, the others still get the new key; this one's caller is told.
        return [f"{row.name} keeps the key that it has: {error}"]
    if provider is None or provider.key is None:
        return [f"{row.name} keeps the key that it has: there is no other one in secrets.toml or the keyring"]
    current.known.add([provider.key])
    if await parts.listeners.rekey(row.id, current.run, provider.key):
        return []
    return [f"the gateway is told of the new key of {row.name} as soon as it answers"]


async def _waits(parts: Parts, row: InstanceRow, names: frozenset[str]) -> list[str] | None:
    """Say so of an agent that nobody brings back, if a setting of it refers to one of these secrets."""
    try:
        entries = await asyncio.to_thread(parts.settings.for_a_restart, row)
    except Exception:
        return None  # its settings are refused: a start would say why
    return [_PARKED.format(name=row.name)] if secrets.names(one.value for one in entries) & names else None
