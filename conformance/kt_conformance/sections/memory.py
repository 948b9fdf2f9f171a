"""`memory`: the folder of an attached memory is made, delivered, kept over a Run, and withheld once it is detached."""

from pathlib import Path

from kt_conformance import delivery
from kt_conformance.instance import Instance
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.rig import NAME
from kt_conformance.stage import Stage
from kt_manifest.contract import described
from kt_manifest.contract.snapshot import Rule

KEEPSAKE = "tck-keepsake"
KEY = "memory.dir"
SETTLE_S = 1.0


def check(stage: Stage) -> None:
    """Attach, start, look, start again, detach, start, look."""
    rules = stage.subject.rules_for(KEY)
    if not rules:
        raise NotApplicable(f"the adapter does not map {KEY}")
    stage.need_eyes()
    with stage.agent() as instance:
        instance.kt.memory_attach(NAME, "filesystem")
        folder = instance.home / "memory"
        for life in range(2):
            stage.start(instance)
            _delivered(stage, instance, rules, str(folder))
            if not folder.is_dir():
                raise SectionFailed("got no folder for the attached memory, wanted one in the Agent Home")
            stage.rig.provider.release()
            stage.finish(instance)
            _kept(folder, life)
        instance.kt.memory_detach(NAME)
        stage.start(instance)
        _withheld(instance, rules, str(folder))
        stage.rig.provider.release()
        stage.finish(instance)
        if not (folder / KEEPSAKE).exists():
            raise SectionFailed("got an empty memory after it was detached, wanted what was in it")


def _delivered(stage: Stage, instance: Instance, rules: list[Rule], folder: str) -> None:
    pid, home = instance.pid, instance.home

    def lost() -> list[Rule]:
        return [rule for rule in rules if not delivery.holds(rule, folder, pid=pid, home=home)]

    stage.deadline.wait(lambda: not lost(), within_s=SETTLE_S)
    for rule in lost():
        got = delivery.shown(rule, pid=pid, home=home)
        raise SectionFailed(
            f"{KEY}: got {got} in {described.target(rule.target)} of the subject's process, wanted {folder}"
        )


def _kept(folder: Path, life: int) -> None:
    """Leave something after the first life; find it after the next."""
    keepsake = folder / KEEPSAKE
    if life and not keepsake.exists():
        raise SectionFailed("got a memory that lost a file, wanted all of it over a Run")
    keepsake.touch()


def _withheld(instance: Instance, rules: list[Rule], folder: str) -> None:
    for rule in rules:
        if folder in (delivery.arrived(rule, pid=instance.pid, home=instance.home) or ""):
            raise SectionFailed(
                f"{KEY}: got {folder} in {described.target(rule.target)} after it was detached, wanted nothing"
            )
