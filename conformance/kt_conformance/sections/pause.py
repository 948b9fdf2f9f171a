"""`pause`: what is guaranteed to stand still does, by the system's word and by all that it could do meanwhile."""

from kt_client.errors import KtError
from kt_conformance import processes
from kt_conformance.instance import Instance
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.rig import NAME
from kt_conformance.stage import Stage
from kt_manifest.contract import capability
from kt_manifest.contract.capability import Level

FREEZE_S = 3.0
STILL_S = 0.8
LIVELY_S = 0.6
THAW_S = 5.0


def check(stage: Stage) -> None:
    """Pause the subject, watch it, and let it go on."""
    level = stage.subject.level(capability.PAUSE)
    if level is Level.UNSUPPORTED:
        raise NotApplicable("pause is declared unsupported on this system")
    stage.need_eyes()
    with stage.agent() as instance:
        stage.start(instance)
        stage.urge(instance)
        before = _Activity(stage, instance)
        lively = stage.deadline.wait(lambda: before.differs(), within_s=LIVELY_S) is not None
        _pause(stage, instance, guaranteed=level is Level.GUARANTEED)
        _resume(stage, instance, lively=lively and level is Level.GUARANTEED)
        stage.rig.provider.release()
        stage.finish(instance)


class _Activity:
    """What shows that an agent does something: its output, its files, its calls."""

    def __init__(self, stage: Stage, instance: Instance) -> None:
        self._stage = stage
        self._instance = instance
        self._then = self._look()

    def differs(self) -> str | None:
        """Say what has happened since, None where nothing has."""
        now = self._look()
        told = ("it printed", "its files changed", "it called its provider")
        return next(
            (what for what, one, other in zip(told, self._then, now, strict=True) if one != other), None
        )

    def _look(self) -> tuple[object, ...]:
        calls = len(self._stage.rig.provider.calls())
        return len(self._instance.output()), self._instance.writings(), calls


def _pause(stage: Stage, instance: Instance, *, guaranteed: bool) -> None:
    tree = instance.tree()
    try:
        instance.kt.pause(NAME)
    except KtError as error:
        raise SectionFailed(
            f"pause is declared {stage.subject.level('pause')}, and failed: {error}"
        ) from error
    instance.wait_for("paused", within_s=FREEZE_S)
    kind = instance.transitions()[-1][2].get("kind")
    if not guaranteed:
        if kind != "pause-best-effort":
            raise SectionFailed(f"got the cause {kind}, wanted pause-best-effort, as declared")
        return
    if kind != "command":
        raise SectionFailed(f"got the cause {kind}, wanted a pause that is sure, as declared")
    _watch(stage, instance, tree)


def _watch(stage: Stage, instance: Instance, tree: list[processes.Process]) -> None:
    def all_still() -> bool:
        return all(processes.standing(process) for process in [*tree, *instance.tree()])

    stage.deadline.until(all_still, "every process of the paused subject to stand still", within_s=FREEZE_S)
    used = {process: process.ticks for process in instance.tree()}
    activity = _Activity(stage, instance)

    def moved() -> str | None:
        if (what := activity.differs()) is not None:
            return f"pause is declared guaranteed, and while it was paused {what}"
        for process, ticks in used.items():
            now = processes.same(process)
            if now is not None and now.ticks > ticks + 1:
                return (
                    f"pause is declared guaranteed, and process {process.pid} used processor time meanwhile"
                )
        return None

    stage.deadline.watch(moved, for_s=STILL_S)


def _resume(stage: Stage, instance: Instance, *, lively: bool) -> None:
    activity = _Activity(stage, instance)
    instance.kt.resume(NAME)
    instance.wait_for("running", within_s=THAW_S)
    stage.deadline.until(
        lambda: not any(processes.standing(process) for process in instance.tree()[:1]),
        "the resumed subject to go on",
        within_s=THAW_S,
    )
    if lively:
        stage.deadline.until(
            activity.differs,
            "the resumed subject to do what it did before (print, write or call); where its work was simply over by "
            "then, [kt.test] args can make it work continuously",
            within_s=THAW_S,
        )
