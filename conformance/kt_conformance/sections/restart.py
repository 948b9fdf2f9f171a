"""`restart`: a subject that fails is brought back as it was, in a Run of its own; the old Run's token is worthless."""

import os
import signal

from kt_conformance import caller, delivery
from kt_conformance.instance import Instance
from kt_conformance.report import SectionFailed
from kt_conformance.stage import Stage
from kt_conformance.subject import CRASH_ADVICE
from kt_manifest.contract import described
from kt_manifest.contract.snapshot import Rule

BACK_S = 15.0
SETTLE_S = 1.0
STAYS_S = 0.7
REFUSED = 401


def check(stage: Stage) -> None:
    """Kill it, and see it come back."""
    crash = stage.subject.trial.crash
    with stage.agent(*(crash or ())) as instance:
        instance.set("restart.policy", "on-failure")
        stage.start(instance, advice="" if crash is None else CRASH_ADVICE)
        old_run, old = instance.run_id, _addresses(stage, instance)
        if crash is None:
            os.kill(instance.pid, signal.SIGKILL)
        _come_back(stage, instance, old_run)
        new = _addresses(stage, instance)
        _judge(instance, old, new)
        if crash is None:
            stage.settle(instance)
            stage.stays(instance, for_s=STAYS_S)
            stage.rig.provider.release()
            stage.finish(instance)


def _come_back(stage: Stage, instance: Instance, old_run: str) -> None:
    def back() -> bool:
        entry = instance.entry()
        if entry["state"] == "stopped":
            raise SectionFailed(
                "got the state stopped after a failure, wanted a restart: the program ended with 0, which says that it "
                "was done"
            )
        seen = (entry["run_id"] != old_run, entry["state"] == "running", entry["restart_count"] >= 1)
        return all(seen)

    if not stage.deadline.wait(back, within_s=BACK_S):
        raise SectionFailed(
            f"got nothing within {BACK_S:g} s, wanted the subject to come back with a Run of its own; "
            f"{instance.last_words()}"
        )


def _addresses(stage: Stage, instance: Instance) -> dict[Rule, str]:
    rules = stage.subject.rules_for("metering.base_url")
    return {rule: _address(stage, instance, rule) for rule in rules}


def _address(stage: Stage, instance: Instance, rule: Rule) -> str:
    pid = instance.pid
    got = stage.deadline.wait(lambda: delivery.address(rule, pid=pid, home=instance.home), within_s=SETTLE_S)
    if got is None:
        raise SectionFailed(
            f"{rule.key}: got nothing in {described.target(rule.target)}, wanted the listener's address"
        )
    return got


def _judge(instance: Instance, old: dict[Rule, str], new: dict[Rule, str]) -> None:
    for rule, address in old.items():
        if new.get(rule) == address:
            raise SectionFailed(
                f"{rule.key}: got the address of the Run that failed, wanted one with a new token"
            )
        if (status := caller.ask(address)) != REFUSED:
            raise SectionFailed(
                f"got {status} for a call with the token of the Run that failed, wanted {REFUSED}"
            )
    seen = [new_state for _, new_state, _ in instance.transitions()]
    if seen[:5] != ["starting", "running", "failed", "starting", "running"]:
        raise SectionFailed(
            f"got the states {' > '.join(seen)}, wanted a failure between two lives; {instance.last_words()}"
        )
