"""`listener_token`: the subject's listener serves nobody else, and the provider's key stays out of the subject."""

from kt_conformance import caller, delivery, processes
from kt_conformance.instance import Instance
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.stage import Stage
from kt_manifest.contract import described

REFUSED = 401
STOPPED = 403


def check(stage: Stage) -> None:
    """Call without the token, with a wrong one, and after the end; look for the key."""
    if not stage.subject.led:
        raise NotApplicable(
            "the adapter maps neither metering.base_url nor metering.origin: there is no listener to guard"
        )
    stage.need_eyes()
    with stage.agent() as instance:
        stage.start(instance)
        bare = f"http://127.0.0.1:{instance.entry()['port']}"
        _withheld(stage, instance)
        for what, url in (("without a token", f"{bare}/v1"), ("with a wrong token", f"{bare}/{'A' * 43}/v1")):
            if (status := caller.ask(url)) != REFUSED:
                raise SectionFailed(f"got {status} for a call {what}, wanted {REFUSED}")
        _carried(stage, instance)
        stage.finish(instance)
        if (status := caller.ask(f"{bare}/v1")) not in (REFUSED, STOPPED):
            raise SectionFailed(f"got {status} for a call after the end, wanted {STOPPED}")
        if any(call.model == "tck-intruder" for call in stage.rig.provider.calls()):
            raise SectionFailed("got a call of an intruder at the provider, wanted none")


def _withheld(stage: Stage, instance: Instance) -> None:
    """The agent never sees the provider's key: neither in its process nor in what was written for it."""
    key = stage.rig.provider.key
    for process in instance.tree():
        words = [*processes.environment(process.pid).values(), *processes.arguments(process.pid)]
        if any(key in word for word in words):
            raise SectionFailed("got the provider's key in the subject's process, wanted a placeholder")
    targets = [rule for rule in stage.subject.adapter.mapping if rule.key == "metering.upstream_api_key"]
    for rule in targets:
        if key in (delivery.arrived(rule, pid=instance.pid, home=instance.home) or ""):
            raise SectionFailed(
                f"got the provider's key in {described.target(rule.target)}, wanted a placeholder"
            )


def _carried(stage: Stage, instance: Instance) -> None:
    """The subject's own calls carry the token."""
    stage.urge(instance)
    stage.rig.provider.release()
    ours = 2
    calls = [call for call in _after_work(stage, instance) if call.get("status") in (REFUSED, STOPPED)]
    if len(calls) > ours:
        raise SectionFailed(
            f"got {len(calls) - ours} calls of the subject that were refused with {calls[-1].get('status')}, wanted "
            "each with the token that metering.base_url or the key carries"
        )
    if not stage.rig.provider.calls():
        stage.warn(
            "the subject made no call that reached its provider: that it carries its token was not seen"
        )


def _after_work(stage: Stage, instance: Instance) -> list[dict[str, object]]:
    stage.let_work(instance)
    return instance.calls()
