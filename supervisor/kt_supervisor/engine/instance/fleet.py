"""All instances of one state directory: registered, found by name, adopted, and read as one snapshot."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kt_ledger import ids
from kt_ledger.exit_codes import USAGE, WRONG_STATE
from kt_ledger.layout import RunLayout
from kt_ledger.records import InstanceRow, NoteCounts, RunRow
from kt_ledger.store import Store
from kt_manifest.configuration import options, settings
from kt_manifest.contract import capability, names
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import render, run_facts
from kt_supervisor.engine.instance import apart, remembering, removal, restart_policy
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.instance.lifecycle import InvalidTransition
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.problems import NoSuchAgent, Refused
from kt_supervisor.engine.run import known_provider
from kt_supervisor.engine.telling import restart_view, views
from kt_supervisor.engine.telling.views import Known

logger = logging.getLogger(__name__)

STOP_ALL_TIMEOUT_S = 30.0
MOST_REMOVED = 1000
REKEY_WAIT_S = 5.0


class Fleet:
    """The instances, by name; the ledger is the truth, this is who works on it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._instances: dict[str, Instance] = {}
        self._leaving: set[str] = set()
        self._ending = False

    def instance(self, name: str) -> Instance:
        """Return an instance. Raises NameInvalid, NoSuchAgent."""
        names.check(name)
        found = self._instances.get(name)
        if found is None or found.removed:
            raise NoSuchAgent(name)
        return found

    def instances(self) -> list[Instance]:
        """Return all that are registered, by name."""
        return [one for _, one in sorted(self._instances.items()) if not one.removed]

    async def id_of(self, name_or_id: str) -> str:
        """Return the id of an instance by its name, or of one that was removed by its id. Raises NoSuchAgent."""
        found = self._instances.get(name_or_id)
        if found is not None and not found.removed:
            return found.id
        removed = await self._parts.writer.do(lambda store: store.instance_by_id(name_or_id))
        if removed is None:
            raise NoSuchAgent(name_or_id)
        return removed.id

    async def register(self, name: str, snapshot: str) -> dict[str, Any]:
        """Register an instance; everything is judged first, and a refusal leaves nothing behind."""
        names.check(name)
        self.check_open()
        if name in self._leaving:
            raise Refused(
                f"cannot register {name}: got the name of an agent that is just being removed, wanted a free one; "
                "try again in a moment",
                code="name_taken",
                exit_code=USAGE,
            )
        adapter = Adapter.from_json(snapshot)
        row = InstanceRow(
            id=ids.new_id(wall=self._parts.clock),
            name=name,
            kind=adapter.kind,
            adapter=snapshot,
            created_at_ns=self._parts.clock.wall_ns(),
        )
        home = self._parts.files.home(name)
        if home.is_symlink() or (home.exists() and not home.is_dir()):
            raise Refused(
                f"cannot register {name}: got something at {home} that is no folder, wanted a place for its "
                "Agent Home; move it away",
                code="home_unusable",
            )
        there = home.exists()
        await self._parts.writer.do(lambda store: store.add_instance(row))
        self._instances[name] = Instance(self._parts, row)
        notices = [f"the Agent Home {home} is there already and is used as it is"] if there else []
        notices += render.exposures(adapter, run_facts.CARRY_A_TOKEN)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            notices.append(f"the Agent Home {home} cannot be made yet: {error.strerror}")
        levels = views.capabilities(adapter)
        facts = {"name": name, "kind": adapter.kind, "agent_home": str(home), "id": row.id}
        return facts | {"capabilities": levels, "os": capability.this_os(), "notices": notices}

    async def adopt(self) -> None:
        """Take over what the ledger knows: instances, their Runs, their listeners. Raises StoreUnavailable."""
        await removal.resume(self._parts)
        rows, runs = await self._parts.writer.do(lambda store: (store.instances(), store.unended_runs()))
        by_id = {row.id: self._instances.setdefault(row.name, Instance(self._parts, row)) for row in rows}
        await asyncio.gather(*(self._adopt_one(by_id.get(run.instance_id), run) for run in runs))
        for row in rows:
            if by_id[row.id].current is None:
                await remembering.of_nobody(self._parts, row)
                await by_id[row.id].wait_again()

    async def _adopt_one(self, instance: Instance | None, run: RunRow) -> None:
        try:
            if instance is not None and instance.current is None:
                await instance.adopt(run)
        except Exception:
            # One instance that cannot be taken over keeps nobody else from being taken over.
            logger.exception("run %s could not be taken over yet", run.id)
            if instance is not None and instance.current is not None:
                self._parts.tasks.start(f"watch {instance.name}", instance.watch())

    async def forget(self, name: str, *, delete: bool, force: bool) -> dict[str, Any]:
        """Remove an instance (`Instance.remove`)."""
        instance = self.instance(name)
        # The ledger frees the name before the folders are gone: nobody may take it in between.
        self._leaving.add(name)
        try:
            answer = await instance.remove(delete=delete, force=force)
        finally:
            self._leaving.discard(name)
        if self._instances.get(name) is instance:
            del self._instances[name]
        return answer

    def check_open(self) -> None:
        """Raise Refused where everything is being stopped: what begins now would be left behind."""
        if self._ending:
            raise Refused(
                "got a verb that begins something while everything is being stopped, wanted it before or after; "
                "try again once the engine has ended",
                code="ending",
                exit_code=WRONG_STATE,
            )

    async def catch_up(self, name: str | None = None) -> None:
        """Have what logs and journals hold at this moment in the ledger, of one instance or of all."""
        await self._parts.listeners.link.flush()
        chosen = [self.instance(name)] if name else list(self._instances.values())
        tails = [instance.current.tail.fold() for instance in chosen if instance.current is not None]
        await asyncio.gather(self._parts.journals.fold(), *tails)

    async def known(self, name: str | None = None) -> list[Known]:
        """Return what is known of one instance, or of all, by name.

        Each instance is read in one moment of the ledger, in a job of its own: other work comes in between.
        """
        writer = self._parts.writer
        if name is not None:
            instance = self.instance(name)
            row = await instance.row()
            known = await writer.do(lambda store: _known(store, self._parts, row, whole=True))
            return [await asyncio.to_thread(lambda: self._with_restarts(self._with_settings(known)))]
        return await self._read_each(await writer.do(lambda store: store.instances()))

    async def removed(self) -> list[Known]:
        """Return what is known of the instances that were removed last, latest first."""
        rows = await self._parts.writer.do(lambda store: store.removed_instances(limit=MOST_REMOVED))
        return await self._read_each(rows)

    async def _read_each(self, rows: Sequence[InstanceRow]) -> list[Known]:
        def job(row: InstanceRow) -> Callable[[Store], Known]:
            return lambda store: _known(store, self._parts, row, whole=False)

        found = [await self._parts.writer.do(job(row)) for row in rows]
        return await asyncio.to_thread(lambda: [self._with_restarts(known) for known in found])

    def _with_restarts(self, known: Known) -> Known:
        """Add what is known of it beyond the ledger."""
        name = known.row.name
        try:
            policy = self._parts.settings.text(name, options.RESTART_POLICY)
        except Exception:
            policy = restart_policy.NEVER  # settings that make no sense bring nobody back
        alarms = () if known.row.removed_at_ns else self._parts.settings.of(name).alarms
        known = replace(known, alarms=tuple(alarm.to_json() for alarm in alarms))
        told = restart_view.restarts(known.row, policy=policy, now=self._parts.restarting.now())
        instance = self._instances.get(name)
        if instance is None:
            return replace(known, restarts=told)
        return replace(known, restarts=told, trouble=instance.trouble, waits_for=instance.waits_for)

    def _with_settings(self, known: Known) -> Known:
        """Add what the settings say, which `show` tells and `list` does not."""
        found = self._parts.settings.of(known.row.name)
        known = replace(known, settings=found.values)
        url = found.values.get(options.UPSTREAM_BASE_URL)
        try:
            provider = known_provider.find(self._parts.files, found.entries, environment={}, keyring=False)
        except Exception:
            return known  # its alarm tells what is wrong with them; reading usage does not depend on it
        shown = None if url is None else str(settings.shown(options.UPSTREAM_BASE_URL, url))
        key_lost = (
            self._parts.listeners.is_closed(known.row.id) if provider and provider.key_missing else False
        )
        return replace(known, upstream=shown, key_missing=key_lost)

    async def secrets_changed(self, names: frozenset[str]) -> dict[str, Any]:
        """Have every live listener whose key is one of these secrets carry what it is now; tell whose that is.

        `keeping` are those whose calls go on with the key that they have.

        An instance that is just being started or stopped is waited for, though not for long.
        """
        found = {
            instance.name: self._parts.tasks.start(f"the key of {instance.name}", instance.rekey(names))
            for instance in self._instances.values()
            if not instance.removed
        }
        if found:
            await asyncio.wait(found.values(), timeout=REKEY_WAIT_S)
        done = {name: task.result() for name, task in found.items() if task.done() and not task.cancelled()}
        notices = [told.notice for told in done.values() if told and told.notice]
        late = sorted(found.keys() - done)
        notices += [f"{name} gets its key once what is under way with it has ended" for name in late]
        return {
            "rekeyed": sorted(name for name, told in done.items() if told and told.done),
            "keeping": sorted(name for name, told in done.items() if told and told.keeps),
            "notices": notices,
        }

    def runs_under_way(self) -> list[RunLayout]:
        """Return the Runs of which something may live; without the ledger, those that nobody saw end."""
        if self._parts.writer.trouble is not None:
            return apart.live_runs(self._parts.files)
        return [instance.current.files for instance in self._instances.values() if instance.current]

    async def stop_apart(self, name: str, *, timeout_s: float) -> dict[str, Any]:
        """Stop an agent while the ledger is away (`apart.stop`)."""
        return await apart.stop(self._parts, name, timeout_s=timeout_s)

    async def stop_all(self) -> list[str]:
        """Stop everything that runs, all at once; return what could not be stopped, in words.

        From here on nothing begins any more. Runs that the ledger does not know, as after somebody replaced it, are
        stopped through their keepers.
        """
        self._ending = True
        if self._parts.writer.trouble is not None:
            return await apart.stop_all(self._parts, apart_from=frozenset(), timeout_s=STOP_ALL_TIMEOUT_S)
        live = [i for i in self._instances.values() if i.is_busy]
        results = await asyncio.gather(
            *(i.stop(timeout_s=STOP_ALL_TIMEOUT_S) for i in live), return_exceptions=True
        )
        failed = [result for result in results if isinstance(result, Exception)]
        troubles = [str(error) for error in failed if not isinstance(error, InvalidTransition)]
        known = await self._parts.writer.do(lambda store: {run.id for run in store.unended_runs()})
        return troubles + await apart.stop_all(
            self._parts, apart_from=frozenset(known), timeout_s=STOP_ALL_TIMEOUT_S
        )


def _known(store: Store, parts: Parts, row: InstanceRow, *, whole: bool) -> Known:
    """Return what the ledger knows of one instance: one job of the writer, about a millisecond."""
    return Known(
        row=row,
        adapter=Adapter.from_json(row.adapter),
        home=str(parts.files.home(row.name)),
        run=store.run(row.run_id) if row.run_id else None,
        used=store.summary(row.id, run_id=row.run_id),
        notes=store.notes(row.id) if whole else NoteCounts(),
        port=parts.listeners.port(row.id),
    )
