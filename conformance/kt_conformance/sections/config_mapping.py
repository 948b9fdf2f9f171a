"""`config_mapping`: the values of settings arrive where the adapter says, in the program that is its agent."""

from pathlib import Path

from kt_conformance import delivery
from kt_conformance.instance import Instance
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.stage import Stage
from kt_manifest.contract import described
from kt_manifest.contract.snapshot import EnvTarget, FlagTarget, Rule, Shape
from kt_manifest.contract.trial import PATH

PASS_THROUGH = ("TCK_PROBE", "verbatim-1")
SETTLE_S = 5.0
LISTENER = ("metering.base_url", "metering.origin")
BY_THE_ENGINE = (*LISTENER, "metering.upstream_base_url", "metering.upstream_api_key")
FREE = ("model", "acp.command")


def check(stage: Stage) -> None:
    """Set what is mapped, start, and look for it."""
    stage.need_eyes()
    values = _values(stage)
    if not values and not stage.subject.led:
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
    given = stage.subject.trial.settings
    values = {key: value for key, value in given.items() if stage.subject.rules_for(key)}
    for key in FREE:
        if stage.subject.rules_for(key):
            values[key] = f"{given.get(key, key)}-{stage.nonce()}"
    for rule in stage.subject.adapter.mapping:
        if rule.key not in (*values, *BY_THE_ENGINE, "memory.dir"):
            stage.warn(f"{rule.key} is mapped, and was not tried; [kt.test] settings can have a value for it")
    return values


def _arrive(stage: Stage, instance: Instance, values: dict[str, str]) -> None:
    wanted = [(rule, value) for key, value in values.items() for rule in stage.subject.rules_for(key)]
    wanted.append((Rule(f"agent.{PASS_THROUGH[0]}", EnvTarget(PASS_THROUGH[0])), PASS_THROUGH[1]))
    pid = instance.pid

    def missing() -> list[str]:
        return [
            f"got {delivery.shown(rule, pid=pid, home=instance.home)} in {described.target(rule.target)} ({rule.key}), "
            f"wanted {value!r}"
            for rule, value in wanted
            if not delivery.holds(rule, value, pid=pid, home=instance.home)
        ]

    _listener(stage, instance, pid)
    # A wrapper may still be about to become the agent.
    stage.deadline.wait(lambda: not missing(), within_s=1.0)
    if found := missing():
        raise SectionFailed(f"the subject's process does not have what was set: {'; '.join(found)}")
    _below(stage, instance, wanted)


def _listener(stage: Stage, instance: Instance, pid: int) -> None:
    port = instance.entry().get("port")
    for rule in [rule for key in LISTENER for rule in stage.subject.rules_for(key)]:
        got = delivery.address(rule, pid=pid, home=instance.home) or ""
        if not got.startswith(f"http://127.0.0.1:{port}"):
            what = "another address" if got else "nothing"
            raise SectionFailed(
                f"got {what} in {described.target(rule.target)} ({rule.key}), wanted the listener's address"
            )


def _below(stage: Stage, instance: Instance, wanted: list[tuple[Rule, str]]) -> None:
    """Tell where a process below the first one lost a variable: it may be a tool of the agent, or the agent itself."""
    for process in instance.tree()[1:]:
        for rule, value in wanted:
            lost = not delivery.holds(rule, value, pid=process.pid, home=instance.home)
            if isinstance(rule.target, EnvTarget) and lost:
                stage.warn(
                    f"process {process.pid}, which the subject started, does not have {rule.target.name}"
                )


def _dumped(stage: Stage, shown: Path, values: dict[str, str]) -> None:
    stage.deadline.until(shown.exists, "the file that [kt.test] dump names", within_s=SETTLE_S)
    lines = set(shown.read_text(errors="surrogateescape").splitlines())
    wanted = [f"env={PASS_THROUGH[0]}={PASS_THROUGH[1]}"]
    plain = [rule for rule in stage.subject.adapter.mapping if rule.shape == Shape()]
    for rule in plain:
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
