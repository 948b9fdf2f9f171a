"""`config_mapping`: the values of settings arrive where the adapter says, in the program that is its agent."""

from pathlib import Path

from kt_conformance import delivery
from kt_conformance.instance import Instance
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.stage import Stage
from kt_manifest.contract.snapshot import EnvTarget, FlagTarget, Rule
from kt_manifest.contract.trial import PATH

PASS_THROUGH = ("TCK_PROBE", "verbatim-1")
SETTLE_S = 5.0
SET_BY_THE_KIT = ("metering.upstream_base_url", "metering.upstream_api_key")
LISTENER = ("metering.base_url", "metering.origin")


def check(stage: Stage) -> None:
    """Set what is mapped, start, and look for it."""
    stage.need_eyes()
    values = _values(stage)
    if not values and not any(rule.key in LISTENER for rule in stage.subject.adapter.mapping):
        raise NotApplicable("the adapter maps no setting that the kit could set")
    shown = stage.rig.root / f"dump-{stage.nonce()}"
    dump = stage.subject.trial.dump
    with stage.agent(*(word.replace(PATH, str(shown)) for word in dump or ())) as instance:
        for key, value in values.items():
            instance.set(key, value)
        instance.set(f"agent.{PASS_THROUGH[0]}", PASS_THROUGH[1])
        stage.start(instance)
        _arrive(stage, instance, values)
        if dump is not None:
            _dumped(stage, shown, values)
        stage.urge(instance)
        stage.rig.provider.release()
        if "model" in values and stage.subject.led:
            _model(stage, instance, values["model"])
        stage.finish(instance)


def _values(stage: Stage) -> dict[str, str]:
    """Return a value that nobody would guess for each mapped key that takes any text."""
    free = {
        "model": f"{stage.subject.trial.settings.get('model', 'model')}-{stage.nonce()}",
        "acp.command": f"command-{stage.nonce()}",
    }
    values = {}
    for rule in stage.subject.adapter.mapping:
        if rule.key in free:
            values[rule.key] = free[rule.key]
        elif rule.key in stage.subject.trial.settings:
            values[rule.key] = stage.subject.trial.settings[rule.key]
        elif rule.key not in (*SET_BY_THE_KIT, *LISTENER, "memory.dir"):
            stage.warn(f"{rule.key} is mapped, and was not tried")
    return values


def _arrive(stage: Stage, instance: Instance, values: dict[str, str]) -> None:
    wanted = [(rule, values[rule.key]) for rule in stage.subject.adapter.mapping if rule.key in values]
    wanted.append((Rule(f"agent.{PASS_THROUGH[0]}", EnvTarget(PASS_THROUGH[0])), PASS_THROUGH[1]))
    pid = instance.pid

    def missing() -> list[str]:
        return [
            f"{rule.key}: got {delivery.arrived(rule, pid=pid, home=instance.home)!r} in {delivery.described(rule)}, "
            f"wanted {value!r}"
            for rule, value in wanted
            if delivery.arrived(rule, pid=pid, home=instance.home) != value
        ]

    listener = [rule for rule in stage.subject.adapter.mapping if rule.key in LISTENER]
    for rule in listener:
        got = delivery.arrived(rule, pid=pid, home=instance.home) or ""
        if f":{instance.entry()['port']}/" not in got + "/":
            raise SectionFailed(
                f"{rule.key}: got {got!r} in {delivery.described(rule)}, wanted the listener's address"
            )
    # A wrapper may still be about to become the agent.
    stage.deadline.wait(lambda: not missing(), within_s=1.0)
    if found := missing():
        raise SectionFailed(f"the subject's process does not have what was set: {'; '.join(found)}")
    _below(stage, instance, wanted)


def _below(stage: Stage, instance: Instance, wanted: list[tuple[Rule, str]]) -> None:
    """Tell where a process below the first one lost a variable: it may be a tool of the agent, or the agent itself."""
    for process in instance.tree()[1:]:
        for rule, value in wanted:
            if (
                isinstance(rule.target, EnvTarget)
                and delivery.arrived(rule, pid=process.pid, home=instance.home) != value
            ):
                stage.warn(
                    f"process {process.pid}, which the subject started, does not have {rule.target.name}"
                )


def _dumped(stage: Stage, shown: Path, values: dict[str, str]) -> None:
    stage.deadline.until(shown.exists, "the file that [kt.test] dump names", within_s=SETTLE_S)
    lines = set(shown.read_text(errors="surrogateescape").splitlines())
    wanted = [f"env={PASS_THROUGH[0]}={PASS_THROUGH[1]}"]
    for rule in stage.subject.adapter.mapping:
        if rule.key in values and isinstance(rule.target, EnvTarget):
            wanted.append(f"env={rule.target.name}={values[rule.key]}")
        if rule.key in values and isinstance(rule.target, FlagTarget):
            wanted.append(f"arg={values[rule.key]}")
    if lost := [line for line in wanted if line not in lines]:
        raise SectionFailed(f"the subject says that it was not given {', '.join(lost)}")


def _model(stage: Stage, instance: Instance, model: str) -> None:
    """Where it calls its provider, it asks for the model that was set."""
    if not stage.let_work(instance):
        stage.warn("the subject made no call: whether it uses the model that is set was not seen")
        return
    asked = {call.model for call in stage.rig.provider.calls()}
    if asked and not any(model.rpartition("/")[2] in name for name in asked):
        raise SectionFailed(
            f"got calls for the model {', '.join(sorted(asked))}, wanted {model}, which was set"
        )
