"""What the next start of an instance would run, and in what that differs from what runs now. Writes and starts nothing.

Reads what a start reads: settings, secrets, the PATH; of a Run under way its process and its rendered files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow, RunRow
from kt_manifest.configuration.layers import Entry
from kt_manifest.contract import shipped
from kt_manifest.launch import agent_home, readiness, render
from kt_manifest.launch.render import Launch
from kt_manifest.launch.substitution import PlaceholderUnset
from kt_supervisor.engine.run import launching, replacing
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
    """The next start: `launch` is None where not even that can be said; `refusals` are why it would not begin."""

    plan: Plan | None
    launch: Launch | None
    executable: str | None
    refusals: tuple[str, ...]
    hidden: tuple[str, ...] = field(default=(), repr=False)
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
        entries: what is set for it now, or why that cannot be said (`CurrentSettings.for_start`).
        environment: the variables of whoever would start it.
        run: the Run under way; its token and id are taken, so that only what would really change differs.
    """
    try:
        plan = launching.plan_unrendered(files, row, entries=entries(), environment=environment)
        facts = launching.run_facts(plan, row, run, port=row.port)
        launch = render.preview(plan.adapter, plan.values, facts)
    except Exception as error:
        if getattr(error, "exit_code", None) is None:
            raise
        return Preview(plan=None, launch=None, executable=None, refusals=(str(error),))
    refusals = [str(PlaceholderUnset(launch.unset))] if launch.unset else []
    executable = None
    try:
        remedy = shipped.remedy(plan.adapter)
        executable = render.find_executable(launch.argv[0], launch.env, plan.home, remedy=remedy)
        if plan.adapter.ready is not None:
            readiness.probe(plan.adapter.ready, launch.env, plan.home)
    except (render.ExecutableMissing, render.NotExecutable, readiness.ProbeUnresolved) as error:
        refusals.append(str(error))
    token = launching.NEXT_TOKEN if run is None else run.token
    return Preview(
        plan=plan,
        launch=launch,
        executable=executable,
        refusals=tuple(refusals),
        hidden=(*sorted(launch.secret_texts), token),
        running=None if run is None else _compared(run, launch, executable, plan.home),
    )


def _compared(run: RunRow, launch: Launch, executable: str | None, home: Path) -> Compared:
    running = replacing.look(run.agent_pid)
    if running is None:
        return Compared(run_id=run.id, pid=run.agent_pid, differences=None)
    wanted = (executable or launch.argv[0], *launch.argv[1:])
    # A script is run by its interpreter, which the kernel puts in front (execve(2)): the end is what was asked for.
    same = running.argv[-len(wanted) :] == wanted
    found = [] if same else [Difference("command line", "", "changed")]
    found += _of_variables(running.env, launch.env)
    found += [
        Difference("file", file.path, how)
        for file in launch.files
        if (how := _of_file(home, file.path, file.content)) is not None
    ]
    found += [Difference("file", path, "changed") for path in render.merges_pending(home, launch.merges)]
    return Compared(run_id=run.id, pid=run.agent_pid, differences=tuple(found))


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
