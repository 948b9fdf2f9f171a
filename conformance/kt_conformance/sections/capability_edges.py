"""`capability_edges`: each capability is shown as it is declared for this system, and behaves so at its edge."""

from collections.abc import Callable

from kt_client.errors import KtError, Unsupported
from kt_conformance.deadline import Deadline
from kt_conformance.instance import Instance
from kt_conformance.report import SectionFailed
from kt_conformance.rig import NAME
from kt_conformance.stage import Stage
from kt_manifest.contract import capability
from kt_manifest.contract.capability import Level

FAST_S = 3.0
"""A refusal asks nobody, and takes no longer than this on a busy machine."""


def check(stage: Stage) -> None:
    """Compare what is declared with what is shown, accepted and refused."""
    declared = {name: str(stage.subject.level(name)) for name in capability.CAPABILITIES}
    with stage.agent() as instance:
        stage.start(instance)
        shown = instance.entry()["capabilities"]
        if shown != declared:
            raise SectionFailed(f"got {shown} for this system, wanted what the manifest declares: {declared}")
        _edge(stage, instance, capability.PAUSE, lambda: _pause_and_resume(instance))
        _edge(stage, instance, capability.INTERACTION, lambda: instance.send(stage.nonce()))
        stage.rig.provider.release()
        stage.finish(instance)


def _edge(stage: Stage, instance: Instance, name: str, use: Callable[[], None]) -> None:
    before = instance.transitions()
    if stage.subject.level(name) is not Level.UNSUPPORTED:
        try:
            use()
        except KtError as error:
            raise SectionFailed(
                f"{name} is declared {stage.subject.level(name)}, and failed: {error}"
            ) from error
        return
    haste = Deadline(FAST_S)
    try:
        use()
    except Unsupported:
        if not haste.left_s:
            raise SectionFailed(f"got a refusal of {name} after {FAST_S:g} s, wanted it at once") from None
    else:
        raise SectionFailed(f"{name} is declared unsupported here, and was accepted")
    if instance.transitions() != before:
        raise SectionFailed(f"got a change of state by {name}, which is declared unsupported; wanted none")


def _pause_and_resume(instance: Instance) -> None:
    instance.kt.pause(NAME)
    instance.wait_for("paused")
    instance.kt.resume(NAME)
    instance.wait_for("running")
