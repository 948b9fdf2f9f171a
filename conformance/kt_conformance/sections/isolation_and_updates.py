"""`isolation_and_updates`: the subject has the folders of its own and the update switch that its adapter declares.

What it writes elsewhere shows in a home folder that the kit gives it. What nobody declares, what was not seen, and what
was last tried on another release than the installed one, is a warning. What is to be said of a posture is the manifest
room's (`launch.posture.findings`); the kit brings the real process to it.
"""

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

from kt_conformance import processes
from kt_conformance.instance import Instance
from kt_conformance.outside import Outside, described, unused
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.rig import NAME
from kt_conformance.stage import Stage
from kt_manifest.contract.declared_posture import ConfigSwitch, Posture
from kt_manifest.contract.snapshot import FileTarget
from kt_manifest.launch import posture as judging
from kt_manifest.launch.native import json_file, toml_file, yaml_file
from kt_manifest.launch.native.unreadable import Unreadable

VERSION_S = 10.0
LOOK_S = 1.5
HOME_ADVICE = "; here it has a home folder of its own, empty, and no XDG_*: what it needs must not lie there"
LONGEST_OUTPUT_BYTES = 1 << 20
OWN_ONLY = 0o700


def check(stage: Stage) -> None:
    """Ask the installed release, start, and look at the process and its folders."""
    declared = stage.subject.adapter.posture
    if declared.isolation is None and declared.updates is None:
        for finding in judging.findings(stage.subject.adapter, None):
            stage.warn(f"{finding.section}: {finding.text}")
        raise NotApplicable("the adapter declares neither [kt.isolation] nor [kt.updates]")
    stage.need_eyes()
    with Outside(stage.rig.root) as outside, stage.agent() as instance:
        if declared.isolation is not None:
            instance.caller = outside.caller
        stage.start(instance, advice="" if declared.isolation is None else HOME_ADVICE)
        variables = processes.environment(instance.pid)
        neighbour = judging.Neighbour(NAME, instance.home, variables)
        installed = _installed(stage, declared)
        found = judging.findings(stage.subject.adapter, installed, instances=[neighbour])
        for finding in found:
            if finding.level != judging.ERROR:
                stage.warn(f"{finding.section}: {finding.text}")
        if errors := [
            f"{finding.section}: {finding.text}" for finding in found if finding.level == judging.ERROR
        ]:
            raise SectionFailed("; ".join(errors))
        _folders(instance, declared, variables)
        _switches(instance, declared, variables)
        stage.urge(instance)
        stage.rig.provider.release()
        stage.deadline.wait(lambda: stage.signs(instance), within_s=LOOK_S)
        stage.finish(instance)
        _effects(stage, instance, outside)


def _installed(stage: Stage, declared: Posture) -> str | None:
    """Return the installed release, None where nobody can say it."""
    if declared.version is None:
        return None
    try:
        done = subprocess.run(
            declared.version.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=min(VERSION_S, max(stage.deadline.left_s, 0.1)),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        stage.warn(f"[kt.version]: {declared.version.command[0]} could not be asked ({type(error).__name__})")
        return None
    said = done.stdout[:LONGEST_OUTPUT_BYTES].decode("utf-8", "replace")
    return judging.installed_version(declared, said)


def _effects(stage: Stage, instance: Instance, outside: Outside) -> None:
    """Look at what the subject has written, once it has ended."""
    posture = stage.subject.adapter.posture
    if posture.updates is not None:
        stage.warn(
            "[kt.updates]: the kit offers no update, so that the agent obeys was not seen"
            + ("" if posture.updates.never else "; that the switch reaches it was")
        )
    if posture.isolation is None:
        return
    if written := outside.written(allowed=stage.subject.trial.outside):
        raise SectionFailed(
            f"[kt.isolation]: got {described(written)}, written outside of the isolated folders, wanted nothing there: "
            "isolate the variable that leads there (HOME, TMPDIR), or name in [kt.test] outside what may stay"
        )
    rendered = _rendered(stage)
    for name, folder in posture.isolation.env.items():
        if unused(instance.home / folder, instance.home, rendered):
            stage.warn(
                f"[kt.isolation]: nothing was written in the folder of {name}: whether the agent keeps to it was not "
                "seen; [kt.test] can say what makes it work"
            )


def _rendered(stage: Stage) -> frozenset[str]:
    adapter = stage.subject.adapter
    files = {rule.target.path for rule in adapter.mapping if isinstance(rule.target, FileTarget)}
    switch = adapter.posture.updates.config if adapter.posture.updates else None
    return frozenset(files | ({switch.file} if switch and switch.file else set()))


def _folders(instance: Instance, declared: Posture, variables: dict[str, str]) -> None:
    for name in () if declared.isolation is None else declared.isolation.env:
        folder = Path(variables[name])
        if not folder.is_relative_to(instance.home):
            raise SectionFailed(
                f"[kt.isolation]: {name} leads out of the Agent Home, wanted a folder inside of it"
            )
        if not folder.is_dir() or stat.S_IMODE(folder.stat().st_mode) != OWN_ONLY:
            raise SectionFailed(f"[kt.isolation]: the folder of {name} is not there with mode 0700")


def _switches(instance: Instance, declared: Posture, variables: dict[str, str]) -> None:
    updates = declared.updates
    if updates is None:
        return
    words = processes.arguments(instance.pid)
    count = len(updates.args)
    if count and not any(tuple(words[at : at + count]) == updates.args for at in range(len(words))):
        raise SectionFailed(
            "[kt.updates]: the arguments that switch self-update off did not reach the process"
        )
    if updates.config is not None and not _is_set(updates.config, instance, variables):
        where = updates.config.env or updates.config.file
        raise SectionFailed(
            f"[kt.updates]: {updates.config.key} in {where} is not as declared: it may update itself"
        )


def _is_set(switch: ConfigSwitch, instance: Instance, variables: dict[str, str]) -> bool:
    try:
        if switch.env is not None:
            value = json.loads(variables.get(switch.env, ""))
        else:
            value = _document(instance.home / str(switch.file))
        for part in switch.key.split("."):
            value = value[part]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, Unreadable):
        return False
    return type(value) is type(switch.value) and bool(value == switch.value)


def _document(file: Path) -> Any:
    """Return what stands in a file of the agent, by its ending. Raises OSError, UnicodeDecodeError, Unreadable."""
    text = file.read_text("utf-8")
    match file.suffix:
        case ".json":
            return json_file.read(text)
        case ".toml":
            return toml_file.read(text)
    return yaml_file.read(text)
