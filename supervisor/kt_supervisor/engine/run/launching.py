"""Everything of a start that can be judged before anything changes, and the rendering once the Run has its listener.

Reads files of the operator (settings, secrets); writes rendered files into the Agent Home; starts nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow, RunRow
from kt_manifest import home_names
from kt_manifest.configuration import clear_keys, layers, options, secrets, settings
from kt_manifest.configuration.layers import Entry
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract import capability
from kt_manifest.contract.snapshot import ENGINE_OBSERVED, Adapter, Template
from kt_manifest.launch import inheritance, operation, readiness, render
from kt_manifest.launch.operation import Command
from kt_supervisor.engine.gateway import metering
from kt_supervisor.engine.gateway.metering import Upstream
from kt_supervisor.engine.instance import memory_folder
from kt_supervisor.engine.problems import Refused
from kt_supervisor.engine.run import (
    cgroups,
    limits,
    run_environment,
    run_settings,
    told_of_variables,
    undelivered,
)

NEXT_TOKEN, NEXT_RUN = "token-of-the-next-run", "id-of-the-next-run"
"""Stand for what a Run that has not begun does not have yet: neither empty nor a placeholder for any agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A start that nothing speaks against so far; secrets are resolved and do not show in a repr.

    `written` are the settings before that, `secrets` what stood for each name; `unshown` is what nothing that the agent
    prints may show.
    """

    adapter: Adapter
    home: Path
    values: Mapping[str, Value] = field(repr=False)
    entries: tuple[Entry, ...] = field(repr=False)
    secret_keys: frozenset[str]
    upstream: Upstream | None
    base_environment: Mapping[str, str] = field(repr=False)
    written: Mapping[str, Value] = field(default_factory=dict, repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    unshown: frozenset[str] = field(default=frozenset(), repr=False)
    memory_dir: Path | None = None
    notices: tuple[str, ...] = ()

    @property
    def interactive(self) -> bool:
        """Whether the agent has a standard input, on this system."""
        levels = capability.project(self.adapter.declaration, capability.this_os())
        return levels[capability.INTERACTION] is not capability.Level.UNSUPPORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What the keeper starts; `ready` is what is waited for then, None where being alive is enough."""

    argv: tuple[str, ...] = field(repr=False)
    env: dict[str, str] = field(repr=False)
    notices: tuple[str, ...]
    confinement: Mapping[str, Any] = field(default_factory=dict)
    ready: readiness.Probe | None = None


class CommandUnusable(Exception):
    """A command that the adapter declares cannot be run."""


def command(files: StateLayout, row: InstanceRow, template: Template) -> Command:
    """Return a command of the adapter, its program found as the agent's own is. Raises CommandUnusable."""
    try:
        return operation.command(template, run_environment.load(files, row.id) or {}, files.home(row.name))
    except (render.ExecutableMissing, render.NotExecutable) as error:
        raise CommandUnusable(str(error)) from error


def plan(
    files: StateLayout, row: InstanceRow, *, entries: Sequence[Entry], environment: Mapping[str, str]
) -> Plan:
    """Return how an instance would be started.

    Args:
        entries: what is set for it, overrides included (`CurrentSettings.for_a_fresh_start`, `for_a_restart`).
        environment: the variables of whoever asks, all of them; of a restart that nobody asks for, what
            `run_environment.load` gives. The agent inherits what `env.inherit` lets through; references to secrets
            are looked up in all of them.

    Raises:
        NothingToLaunch, SnapshotUnreadable, LayerFault, SecretUnresolved, PlaceholderUnset, SwitchUndeliverable,
        InvalidValue behind a secret.
        Refused: an engine-observed instance without a provider.
    """
    found = plan_unrendered(files, row, entries=entries, environment=environment)
    # Rendered here and thrown away, so that a start which cannot be rendered is refused before anything changes.
    render.render(found.adapter, found.values, run_facts(found, row))
    return found


def plan_unrendered(
    files: StateLayout,
    row: InstanceRow,
    *,
    entries: Sequence[Entry],
    environment: Mapping[str, str],
    missing: list[secrets.SecretUnresolved] | None = None,
) -> Plan:
    """Return how an instance would be started, as far as that can be said without rendering; raises as `plan`.

    With `missing` (`secrets.resolve_all`), a plan without its secrets is one for showing.
    """
    adapter = Adapter.from_json(row.adapter)
    if adapter.start is None:
        raise render.NothingToLaunch(adapter.kind)
    home = files.home(row.name)
    memory_dir = memory_folder.folder(home, row.memory)
    given = layers.effective(entries)
    resolved = secrets.resolve_all(
        given, environment=environment, secrets_file=files.secrets, missing=missing
    )
    values = settings.check_resolved(resolved)
    inherited = inheritance.by_setting(environment, values.get(options.ENV_INHERIT))
    provider = metering.upstream(values)
    if adapter.metering_source == ENGINE_OBSERVED and provider is None:
        raise Refused(
            f"cannot start {row.name}: got no {options.UPSTREAM_BASE_URL}, wanted the provider's absolute http or "
            f"https URL, since its traffic is metered; kt agent config set {row.name} {options.UPSTREAM_BASE_URL} URL",
            code="upstream_missing",
        )
    return Plan(
        adapter=adapter,
        home=home,
        values=values,
        entries=tuple(entries),
        secret_keys=resolved.secret_keys,
        written=given,
        secrets=resolved.secrets,
        upstream=provider,
        base_environment=inherited,
        unshown=frozenset({*resolved.secrets.values(), *_keys(given, values, inherited)}),
        memory_dir=memory_dir,
        notices=(
            *_named_by_the_adapter(entries),
            *undelivered.notices(adapter, _of_this_start(entries)),
            *told_of_variables.left_out(row.name, adapter, values, environment),
            *memory_folder.notices(adapter, memory_dir),
            *told_of_variables.overriding(resolved.secrets, environment, files.secrets),
            *told_of_variables.absent(values, environment),
        ),
    )


def _of_this_start(entries: Sequence[Entry]) -> list[str]:
    return [entry.key for entry in entries if entry.source == layers.INVOCATION_OVERRIDE]


def _named_by_the_adapter(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Tell where a key of the operator's goes to an address that the operator did not choose."""
    sources = {entry.key: entry.source for entry in entries}
    if (
        options.UPSTREAM_API_KEY not in sources
        or sources.get(options.UPSTREAM_BASE_URL) != layers.KIND_DEFAULT
    ):
        return ()
    return (
        f"the provider's key goes to the address that the adapter names: {options.UPSTREAM_BASE_URL} is unset",
    )


def _keys(
    written: Mapping[str, Value], values: Mapping[str, Value], inherited: Mapping[str, str]
) -> set[str]:
    """Return the keys that nobody called a secret: written out in the settings, or inherited by their names."""
    key = values.get(options.UPSTREAM_API_KEY)
    found = clear_keys.texts(written) | ({key} if isinstance(key, str) else set())
    return found | {value for name, value in inherited.items() if inheritance.is_provider_key(name)}


def remedy(adapter: Adapter) -> str | None:
    """Return what to do where the program of an adapter is not there; None where it is to be installed."""
    from kt_manifest.contract import shipped  # late: an engine begins without what judges manifests

    return shipped.remedy(adapter)


def run_facts(
    plan: Plan, row: InstanceRow, run: RunRow | None = None, *, port: int | None = None
) -> render.RunFacts:
    """Return what the engine delivers to a Run; without one, to a Run that is still to come."""
    token, run_id = (NEXT_TOKEN, NEXT_RUN) if run is None else (run.token, run.id)
    if run is None and plan.upstream:
        port = row.port or 1
    return render.RunFacts(
        home=plan.home,
        base_environment=plan.base_environment,
        metering_base_url=metering.base_url(port, token, plan.upstream.url)
        if plan.upstream and port
        else None,
        metering_origin=metering.origin(port, token) if port else None,
        placeholder_key=token if plan.upstream and plan.upstream.key else None,
        instance_id=row.id,
        instance_name=row.name,
        run_id=run_id,
        secret_keys=plan.secret_keys,
        written=plan.written,
        secrets=plan.secrets,
        memory_dir=plan.memory_dir,
    )


def program(
    plan: Plan, row: InstanceRow, run: RunRow, *, port: int | None, files: StateLayout | None = None
) -> Program:
    """Make the Agent Home, write the rendered files into it, and return what is to be started.

    With `files`, base environment and settings are kept for restarts that nobody asks for.

    Raises:
        RenderRefused, ExecutableMissing, NotExecutable, ProbeUnresolved, OSError.
    """
    plan.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    launch = render.render(plan.adapter, plan.values, run_facts(plan, row, run, port=port))
    executable = render.program(launch, plan.home, remedy=lambda: remedy(plan.adapter))
    declared = plan.adapter.ready
    ready = None if declared is None else readiness.probe(declared, launch.env, plan.home)
    _write(plan, launch)
    if files is not None:
        run_environment.store(
            files, row.id, plan.base_environment, secret_names=secrets.names(plan.written.values())
        )
        run_settings.store(files, row.id, run.id, plan.entries)
    return Program(
        argv=(executable, *launch.argv[1:]),
        env=launch.env,
        notices=(*plan.notices, *launch.notices),
        confinement=_confinement(plan.values),
        ready=ready,
    )


def _write(plan: Plan, launch: render.Launch) -> None:
    """Put into the Agent Home what must be there before the start."""
    if plan.memory_dir is not None:
        memory_folder.ensure(plan.home)
    render.make_folders(plan.home, launch.folders)
    shown = render.RenderedFile(home_names.EFFECTIVE, _effective(plan.entries), ours=True)
    render.write_files(plan.home, (*launch.files, shown), launch.merges)


def _confinement(values: Mapping[str, Value]) -> dict[str, Any]:
    # The cgroup is worth having without limits, too: a tree can be frozen and killed by it as a whole.
    return limits.effective(values).for_keeper(cgroups.parent_for_agents().path)


def _effective(merged: tuple[Entry, ...]) -> str:
    shown = [
        {"key": entry.key, "value": settings.shown(entry.key, entry.value), "source": entry.source}
        for entry in merged
    ]
    return json.dumps({"schema_version": 1, "entries": shown}, indent=2) + "\n"
