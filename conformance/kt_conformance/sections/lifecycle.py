"""`lifecycle`: a start, a stop and a failure, each with exactly the events that the contract names, and no other."""

import os
import signal

from kt_client.errors import KtError
from kt_conformance.instance import Instance, Transition
from kt_conformance.report import SectionFailed
from kt_conformance.stage import Stage
from kt_conformance.subject import CRASH_ADVICE

CRASH_WITHIN_S = 12.0
STAYS_S = 1.0


def check(stage: Stage) -> None:
    """Live one life that is stopped, and one that fails."""
    with stage.agent() as instance:
        stage.start(instance)
        if not stage.subject.trial.ends_when_done:
            stage.stays(instance, for_s=STAYS_S)
        stage.rig.provider.release()
        stage.finish(instance)
        _judge_the_stop(stage, instance.transitions())
    crash = stage.subject.trial.crash
    with stage.agent(*(crash or ())) as instance:
        instance.set("restart.policy", "never")
        stage.start(instance, advice="" if crash is None else CRASH_ADVICE)
        _fail(stage, instance, kill=crash is None)
        _judge_the_failure(instance)


def _judge_the_stop(stage: Stage, seen: list[Transition]) -> None:
    if stage.subject.trial.ends_when_done:
        _compare(seen, ["registered", "starting", "running", "stopped"])
        return
    _compare(seen, ["registered", "starting", "running", "stopping", "stopped"])
    kinds = [str(cause.get("kind")) for _, _, cause in seen]
    if kinds[-1] == "stop-forced" and stage.subject.adapter.stop is not None:
        raise SectionFailed(
            f"got a stop that had to be forced ({seen[-1][2].get('detail')}), wanted [lifecycle.stop] to end the agent"
        )
    if kinds[-1] == "stop-forced":
        stage.warn(f"the subject does not end on SIGTERM and was forced: {seen[-1][2].get('detail')}")


def _fail(stage: Stage, instance: Instance, *, kill: bool) -> None:
    if not kill:
        stage.rig.provider.release()
    else:
        try:
            os.kill(instance.pid, signal.SIGKILL)
        except ProcessLookupError as error:
            raise SectionFailed(f"the subject ended by itself; {instance.last_words()}") from error
    entry = instance.wait_for("failed", "stopped", within_s=CRASH_WITHIN_S)
    if entry["state"] == "stopped":
        raise SectionFailed(
            "got the state stopped after a failure, wanted failed: the program ended with 0, which says that it was "
            "done"
        )


def _judge_the_failure(instance: Instance) -> None:
    seen = instance.transitions()
    _compare(seen, ["registered", "starting", "running", "failed"])
    entry = instance.entry()
    if seen[-1][2].get("kind") != "crashed" or entry["restart_count"] != 0:
        raise SectionFailed(
            f"got the cause {seen[-1][2].get('kind')} and {entry['restart_count']} restarts, wanted crashed and none: "
            "the policy was never"
        )
    try:
        instance.stop()
    except KtError:
        return  # nothing is left to stop: exit 4, as of any agent that is down
    if instance.state not in ("failed", "stopped"):
        raise SectionFailed(f"got the state {instance.state} after the end, wanted failed or stopped")


def _compare(seen: list[Transition], wanted: list[str]) -> None:
    got = [seen[0][0], *(new for _, new, _ in seen)] if seen else []
    if got != wanted:
        raise SectionFailed(f"got the states {' > '.join(got)}, wanted {' > '.join(wanted)}")
