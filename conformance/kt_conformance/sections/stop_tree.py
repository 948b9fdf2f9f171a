"""`stop_tree`: after a stop nothing of the subject is left, wherever it went, and nothing goes on in its name."""

from kt_conformance import processes
from kt_conformance.instance import STOP_S, Instance
from kt_conformance.report import SectionFailed
from kt_conformance.stage import Stage

QUIET_S = 0.8
SPAWN_S = 5.0
FORCED_S = 0.5
"""The probe does not end on SIGTERM."""


def check(stage: Stage) -> None:
    """Stop the subject with all that it started; where it starts nothing, the probe does so under its adapter."""
    stage.need_eyes()
    with stage.agent() as instance:
        stage.start(instance)
        stage.urge(instance)
        grown = stage.deadline.wait(lambda: len(instance.tree()) > 1, within_s=1.0) is not None
        _stop(stage, instance)
    if grown:
        return
    with stage.probe("--spawn-child", "--ignore-term") as instance:
        stage.start(instance)
        stage.deadline.until(lambda: len(instance.tree()) > 1, "the probe's child", within_s=SPAWN_S)
        _stop(stage, instance, within_s=FORCED_S)


def _stop(stage: Stage, instance: Instance, *, within_s: float = STOP_S) -> None:
    tree, run = instance.tree(), instance.run_id
    instance.stop(within_s=within_s)
    stage.rig.provider.release()
    left = [process for process in tree if processes.same(process) is not None]
    left += [process for process in processes.marked(f"KT_RUN={run}") if processes.same(process) is not None]
    if left:
        pids = ", ".join(str(process.pid) for process in left)
        raise SectionFailed(f"got processes {pids} after the stop, wanted none of the subject")
    files, calls, lines = instance.writings(), len(stage.rig.provider.calls()), len(instance.output())

    def goes_on() -> str | None:
        if instance.writings() != files:
            return "got files in the Agent Home that changed after the stop, wanted an end: something of it still runs"
        if len(stage.rig.provider.calls()) != calls:
            return "got a call at the provider after the stop, wanted an end: something of it still runs"
        return "got output after the stop, wanted an end" if len(instance.output()) != lines else None

    stage.deadline.watch(goes_on, for_s=QUIET_S)
