"""`interaction`: what is sent is read: the subject prints it, or asks its model about it."""

from kt_client.errors import KtError
from kt_conformance.instance import Instance
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.stage import Stage
from kt_manifest.contract import capability
from kt_manifest.contract.capability import Level
from kt_manifest.contract.trial import NONCE

ANSWER_S = 8.0
MESSAGES = 2
UNDECLARED = "Repeat this word: {nonce}"


def check(stage: Stage) -> None:
    """Send words that nobody has said before, and look for them in what the subject says and asks."""
    level = stage.subject.level(capability.INTERACTION)
    if level is Level.UNSUPPORTED:
        raise NotApplicable("interaction is declared unsupported on this system")
    with stage.agent() as instance:
        stage.start(instance)
        stage.rig.provider.release()
        for _ in range(MESSAGES):
            _exchange(stage, instance, str(level))
        stage.finish(instance)


def _exchange(stage: Stage, instance: Instance, level: str) -> None:
    nonce = stage.nonce()
    text = (stage.subject.trial.say or UNDECLARED).replace(NONCE, nonce)
    try:
        instance.send(text)
    except KtError as error:
        raise SectionFailed(f"interaction is declared {level}, and a message failed: {error}") from error

    def heard() -> bool:
        asked = any(nonce in call.text for call in stage.rig.provider.calls())
        return asked or any(nonce in line for line in instance.output())

    if not stage.deadline.wait(heard, within_s=ANSWER_S):
        raise SectionFailed(
            f"interaction is declared {level}, and {ANSWER_S:g} s after {text!r} was sent the subject had neither "
            f"printed the word nor asked its model about it (state {instance.state}); [kt.test] say can be a message "
            "that makes it"
        )
