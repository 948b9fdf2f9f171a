"""What the next start of an instance would run, and in what that differs from what runs now. Writes and starts nothing.

Reads what a start reads: settings, secrets, the PATH; of a Run under way its process and its rendered files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow, RunRow
from kt_manifest.configuration import options
from kt_manifest.configuration.layers import Entry
from kt_manifest.configuration.secrets import SecretUnresolved
from kt_manifest.launch import agent_home, masking, readiness, render
from kt_manifest.launch.render import Launch
from kt_manifest.launch.substitution import PlaceholderUnset
from kt_supervisor.engine.run import kernel_view, launching, run_settings
from kt_supervisor.engine.run.launching import Plan


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is otherwise in the Run under way: `how` is "changed", "new" (in the next) or "gone"."""

    what: str
    name: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The Run under way beside the next; `differences` is None where the process cannot be looked at."""

    run_id: str
    pid: int | None
    differences: tuple[Difference, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The next start: `launch` is None where not even that can be said; `refusals` are why it would not begin.

    `shown` is `launch` with its secrets masked, part for part; None where that cannot be rendered. Of secrets that are
    missing, the mask itself is in the launch.
    """

    plan: Plan | None
    launch: Launch | None
    executable: str | None
    refusals: tuple[str, ...]
    hidden: tuple[str, ...] = field(default=(), repr=False)
    shown: Launch | None = None
    running: Compared | None = None


def preview(
    files: StateLayout,
    row: InstanceRow,
    *,
    entries: Callable[[], Sequence[Entry]],
    environment: Mapping[str, str],
    run: RunRow | None,
) -> Preview:
    """Return what `kt agent start` would do now.

    Args:
        entries: what is set for it now, or why that cannot be said (`CurrentSettings.for_a_fresh_start`).
        environment: the variables of whoever would start it.
        run: the Run under way; it is compared with a start that had its token and id, so that only what would really
            change differs.
    """
    missing: list[SecretUnresolved] = []
    try:
        found = entries()
        plan = launching.plan_unrendered(files, row, entries=found, environment=environment, missing=missing)
        facts = launching.run_facts(plan, row)
        launch = render.preview(plan.adapter, plan.values, facts)
    except Exception as error:
        if getattr(error, "exit_code", None) is None:
            raise
        # A missing secret may be all that is wrong with a value: what stands for it is none.
        told = tuple(map(str, missing)) or (str(error),)
        return Preview(plan=None, launch=None, executable=None, refusals=told)
    refusals = list(map(str, missing))
    if launch.unset:
        refusals.append(str(PlaceholderUnset(launch.unset, agent=row.name)))
    executable = None
    try:
        executable = render.program(launch, plan.home, remedy=lambda: launching.remedy(plan.adapter))
        if plan.adapter.ready is not None:
            readiness.probe(plan.adapter.ready, launch.env, plan.home)
    except (render.ExecutableMissing, render.NotExecutable, readiness.ProbeUnresolved) as error:
        refusals.append(str(error))
    again = launch
    if run is not None:
        again = render.preview(plan.adapter, plan.values, launching.run_facts(plan, row, run, port=row.port))
    tokens = (launching.NEXT_TOKEN, *(() if run is None else (run.token,)))
    hidden = (*sorted(launch.secret_texts | frozenset(plan.secrets.values())), *tokens)
    return Preview(
        plan=plan,
        launch=launch,
        shown=masking.launch(launch, plan.adapter, plan.values, facts, hidden),
        executable=executable,
        refusals=tuple(refusals),
        hidden=hidden,
        running=None
        if run is None
        else _compared(run, again, executable, plan.home, _of_settings(files, row, run, found)),
    )


def _compared(
    run: RunRow, launch: Launch, executable: str | None, home: Path, settings: Sequence[Difference]
) -> Compared:
    running = kernel_view.look(run.agent_pid)
    if running is None:
        return Compared(run_id=run.id, pid=run.agent_pid, differences=None)
    wanted = (executable or launch.argv[0], *launch.argv[1:])
    # A script is run by its interpreter, which the kernel puts in front (execve(2)): the end is what was asked for.
    same = running.argv[-len(wanted) :] == wanted
    found = [] if same else [Difference("command line", "", "changed")]
    found += [*settings, *_of_variables(running.env, launch.env)]
    found += [
        Difference("file", file.path, how)
        for file in launch.files
        if (how := _of_file(home, file.path, file.content)) is not None
    ]
    found += [Difference("file", path, "changed") for path in render.merges_pending(home, launch.merges)]
    return Compared(run_id=run.id, pid=run.agent_pid, differences=tuple(found))


def _of_settings(
    files: StateLayout, row: InstanceRow, run: RunRow, entries: Sequence[Entry]
) -> list[Difference]:
    """Return what differs in the settings that act through gateway and keeper, where no process shows it."""
    started = run_settings.load(files, row.id)
    if started is None or started.run_id != run.id:
        return []
    now = {entry.key: entry.value for entry in entries if entry.key in options.BY_ENGINE}
    known = started.values.keys() | started.digests.keys()
    changed = [key for key in sorted(options.BY_ENGINE) if not started.has(key, now.get(key))]
    return [
        Difference(
            "setting", key, "changed" if key in now and key in known else "new" if key in now else "gone"
        )
        for key in changed
    ]


def _of_variables(now: Mapping[str, str], then: Mapping[str, str]) -> list[Difference]:
    changed = {name for name in now.keys() & then.keys() if now[name] != then[name]}
    named = [("changed", changed), ("new", then.keys() - now.keys()), ("gone", now.keys() - then.keys())]
    return [Difference("variable", name, how) for how, names in named for name in sorted(names)]


def _of_file(home: Path, path: str, content: str) -> str | None:
    there = agent_home.read_file(home, path)
    if there is None:
        return "new" if content else None
    if not content:
        return "gone" if there.startswith(agent_home.HEADER.encode()) else None
    return None if there == content.encode() else "changed"
