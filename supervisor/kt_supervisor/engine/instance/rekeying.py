"""A provider's key that was changed or removed while agents run: the gateway carries what its name stands for now.

Whoever goes on with the key that it has, since there is no other one, is told of: a key that was removed because it
leaked is not out of use before that.
"""

import asyncio
from dataclasses import dataclass

from kt_ledger.records import InstanceRow, State
from kt_manifest.configuration import options, secrets
from kt_supervisor.engine.instance.restart_policy import History
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run import known_provider
from kt_supervisor.engine.run.current_run import CurrentRun

_PARKED = "{name} does not run, and refers to it: `kt agent start {name}` starts it with the new value"
_CALLS = frozenset({State.STARTING, State.RUNNING, State.PAUSED})


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """What came of it: whether the old key is used on, and what the operator should know; neither: it is replaced."""

    keeps: bool = False
    notice: str = ""

    @property
    def done(self) -> bool:
        """Whether the next call carries the new key."""
        return not self.keeps and not self.notice


async def rekey(
    parts: Parts, row: InstanceRow, current: CurrentRun | None, names: frozenset[str]
) -> Rekeyed | None:
    """Tell the gateway; return what came of it, None where nothing of this instance is concerned.

    The caller holds the instance's lock. The setting is looked at as it holds for the Run now, an override of its start
    included: the key that it refers to is the one that the operator means. A key that only the start referred to is not
    replaced by that, and is used on.
    """
    if row.state is State.FAILED and History.from_json(row.restart).parked:
        return await _waits(parts, row, names)
    if row.state not in _CALLS or current is None:
        return None
    name = row.name
    try:
        entries = await asyncio.to_thread(parts.settings.of_the_run, row)
        setting = secrets.names(entry.value for entry in entries if entry.key == options.UPSTREAM_API_KEY)
        if not setting & names:
            return await asyncio.to_thread(_begun_with, parts, row, names)
        provider = await asyncio.to_thread(known_provider.find, parts.files, entries, environment={})
    except Exception as error:
        # Whatever is wrong with one agent's settings, the others still get the new key; this one's caller is told.
        return Rekeyed(keeps=True, notice=f"{name} keeps the key that it has: {error}")
    if provider is None or provider.key is None:
        if parts.listeners.is_closed(row.id):
            return Rekeyed(notice=f"the calls of {name} are refused until there is a key for them")
        return Rekeyed(keeps=True, notice=_used_on(name, setting & names))
    current.known.add([provider.key])
    if await parts.listeners.rekey(row.id, current.run, provider.key):
        return Rekeyed()
    return Rekeyed(notice=f"the gateway is told of the new key of {name} as soon as it answers")


async def _waits(parts: Parts, row: InstanceRow, names: frozenset[str]) -> Rekeyed | None:
    """Say so of an agent that nobody brings back, if a setting of it refers to one of these secrets."""
    try:
        entries = await asyncio.to_thread(parts.settings.for_a_restart, row)
    except Exception:
        return None  # its settings are refused: a start would say why
    wanted = secrets.names(one.value for one in entries) & names
    return Rekeyed(notice=_PARKED.format(name=row.name)) if wanted else None


def _used_on(name: str, wanted: frozenset[str]) -> str:
    return (
        f"{name} runs, and its calls go on with the key that it has until it is restarted, or until there is another "
        f"one: kt secret set {' '.join(sorted(wanted))}"
    )


def _begun_with(parts: Parts, row: InstanceRow, names: frozenset[str]) -> Rekeyed | None:
    """Return what to tell of a Run that was started with such a key, where its setting names another one by now."""
    started = parts.settings.started(row)
    if started is None or started.run_id != row.run_id or options.UPSTREAM_API_KEY not in started.values:
        return None
    begun = secrets.names([started.values[options.UPSTREAM_API_KEY]]) & names
    if not begun:
        return None
    told = (
        f"{row.name} was started with {', '.join(sorted(begun))}, and its calls go on with that key until it is "
        "restarted, unless it was replaced since: its setting names another one now"
    )
    return Rekeyed(keeps=True, notice=told)
