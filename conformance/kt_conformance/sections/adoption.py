"""`adoption`: the engine is killed, another one comes; the subject is the same process in the same Run, counted on."""

import os
import signal

from kt_client.errors import KtError
from kt_conformance import processes, sentinels
from kt_conformance.instance import Instance
from kt_conformance.report import SectionFailed
from kt_conformance.sections import metering_engine_observed
from kt_conformance.stage import Stage

END_S = 5.0
BACK_S = 15.0
FOLD_S = 5.0
Standing = tuple[str, str, int, int]
"""State, Run, process, and when that process began."""


def check(stage: Stage) -> None:
    """Kill the engine while the subject works, and compare before and after."""
    stage.need_eyes()
    with stage.agent() as instance:
        if stage.subject.trial.ends_when_done:
            stage.rig.provider.hold()
        stage.start(instance)
        stage.urge(instance)
        before = _standing(instance)
        _kill_the_engine(stage)
        if not stage.subject.trial.ends_when_done:
            stage.rig.provider.release()
        after = _adopted(stage, instance, before)
        if after != before:
            raise SectionFailed(
                f"got {_told(after)} after the engine was killed, wanted {_told(before)}, as before"
            )
        stage.rig.provider.release()
        stage.let_work(instance)
        stage.finish(instance)
        _counted(stage, instance)


def _standing(instance: Instance) -> Standing:
    entry = instance.entry()
    pid = int(entry.get("pid") or 0)
    process = processes.read(pid) if pid else None
    return str(entry["state"]), str(entry["run_id"]), pid, process.start if process else 0


def _adopted(stage: Stage, instance: Instance, before: Standing) -> Standing:
    """Return how it stands once that is settled: as before, or ended, or neither for too long."""
    seen: list[Standing] = []

    def settled() -> bool:
        try:
            seen.append(_standing(instance))
        except KtError:
            return False  # no engine yet
        return seen[-1] == before or seen[-1][0] not in ("running", "paused")

    stage.deadline.wait(settled, within_s=BACK_S)
    if not seen:
        raise SectionFailed(f"got no engine within {BACK_S:g} s of the end of the other, wanted one")
    return seen[-1]


def _told(standing: Standing) -> str:
    return f"{standing[0]}, Run {standing[1]}, process {standing[2]}"


def _kill_the_engine(stage: Stage) -> None:
    engine = processes.read(int(stage.rig.kt.engine_status()["pid"]))
    assert engine is not None, "it has just answered"
    os.kill(engine.pid, signal.SIGKILL)
    stage.deadline.until(
        lambda: processes.same(engine) is None, "the killed engine to be gone", within_s=END_S
    )


def _counted(stage: Stage, instance: Instance) -> None:
    """What it did before, during and after is in the ledger, once."""
    if stage.subject.observed:
        if not stage.rig.provider.calls():
            stage.warn("the subject made no call: that its calls are counted over an adoption was not seen")
            return
        metering_engine_observed.judge(stage, instance)
        return
    reports = sentinels.distinct(sentinels.read(instance.output(run=instance.run_id, streams=("out",))))
    if not reports:
        stage.warn("the subject reported nothing: that its reports are counted over an adoption was not seen")
    wanted = (len(reports), sum(r.input_tokens for r in reports), sum(r.output_tokens for r in reports))

    def counted() -> tuple[int, int, int]:
        source = instance.usage()["sources"].get("self-reported", {})
        return tuple(int(source.get(name) or 0) for name in ("events", "input_tokens", "output_tokens"))  # type: ignore[return-value]

    stage.deadline.wait(lambda: counted() == wanted, within_s=FOLD_S)
    if (got := counted()) != wanted:
        raise SectionFailed(
            f"got {got[0]} events of {got[1]} and {got[2]} tokens in the ledger over an adoption, wanted {wanted[0]} "
            f"of {wanted[1]} and {wanted[2]}, as the subject printed"
        )
