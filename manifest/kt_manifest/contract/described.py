"""An adapter in words, for people: where each setting goes, in which form, and all that `[kt]` declares. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from kt_manifest import words
from kt_manifest.contract.declared_posture import ConfigSwitch, Isolation, Updates
from kt_manifest.contract.snapshot import (
    Adapter,
    EnvTarget,
    FileTarget,
    FlagTarget,
    Ready,
    Rule,
    Shape,
    Target,
    Template,
)
from kt_manifest.contract.trial import Trial

Line = tuple[str, str]


def target(place: Target) -> str:
    """Return where a rule delivers to."""
    match place:
        case EnvTarget(name):
            return f"variable {name}"
        case FlagTarget(flag):
            return f"flag {flag}"
        case FileTarget(path, key):
            return f"key {key} in file {path}" if key else f"the whole of file {path}"


def rule(one: Rule, types: Mapping[str, str]) -> str:
    """Return where a rule delivers to, and all of its form that is not the contract's own."""
    own = Shape()
    parts = [target(one.target)]
    if one.key in types:
        parts.append(f"as {types[one.key]}")
    if one.shape.format != own.format:
        parts.append(f"in {one.shape.format}")
    if one.shape.merge:
        parts.append("merged into what is there")
    if one.shape.template is not None:
        parts.append(f"from template {words.shown(one.shape.template)}")
    return ", ".join(parts)


def lines(adapter: Adapter) -> Iterator[Line]:
    """Give all that an adapter declares, but for its capabilities, as a title and what stands there, in order."""
    yield "Kind", adapter.kind
    yield "Name", adapter.display_name or "—"
    yield "Contract", adapter.contract_version or "—"
    yield "Metering", adapter.metering_source
    for name in ("start", "stop", "pause", "resume"):
        template: Template | None = getattr(adapter, name)
        if template is not None:
            yield name.capitalize(), _command([template.exec, *template.args])
            yield from ((f"  {variable}", value) for variable, value in template.env.items())
    yield "Channel", adapter.channel
    if adapter.send_url is not None:
        yield "Send", adapter.send_url
    if adapter.ready is not None:
        yield "Ready", _ready(adapter.ready)
    yield from ((one.key, rule(one, adapter.types)) for one in adapter.mapping)
    yield from ((f"Default {key}", _plain(value)) for key, value in adapter.defaults.items())
    posture = adapter.posture
    if posture.substitution:
        yield "Substitution", "placeholders " + ", ".join(posture.substitution)
    if posture.isolation is not None:
        yield from _isolation(posture.isolation)
    if posture.updates is not None:
        yield from _updates(posture.updates)
    if posture.version is not None:
        yield "Version", f"{_command(posture.version.command)}, read by {posture.version.pattern}"
    yield from _trial(adapter.trial)


def _ready(ready: Ready) -> str:
    if ready.line is not None:
        what = f"a line on {ready.stream} fits {ready.line}"
    elif ready.port is not None:
        what = f"port {ready.port} answers"
    elif ready.http is not None:
        what = f"GET {ready.http} succeeds"
    else:
        what = f"{_command(ready.command or ())} succeeds"
    return f"{what}, within {ready.deadline_s:g} s"


def _isolation(isolation: Isolation) -> Iterator[Line]:
    validated = isolation.validated
    yield "Isolation", "not said for which release" if validated is None else f"validated on {validated}"
    for name, folder in isolation.env.items():
        undocumented = " (undocumented)" if name in isolation.undocumented else ""
        yield f"  {name}", f"folder {folder}{undocumented}"


def _updates(updates: Updates) -> Iterator[Line]:
    facts = ["never updates itself"] if updates.never else ["switched off"]
    if updates.switch is not None:
        facts.append(updates.switch)
    if updates.managed_layer is not None:
        managed = updates.managed_layer
        if isinstance(managed, bool):
            managed = "yes" if managed else "no"
        facts.append(f"a managed layer can turn it on again: {managed}")
    if updates.verified is not None:
        facts.append(f"verified on {updates.verified}")
    yield "Updates", "; ".join(facts)
    yield from ((f"  {name}", value) for name, value in updates.env.items())
    if updates.args:
        yield "  arguments", _command(updates.args)
    if updates.config is not None:
        yield f"  {updates.config.key}", _switch(updates.config)


def _switch(config: ConfigSwitch) -> str:
    place = f"variable {config.env}" if config.env is not None else f"file {config.file}"
    return f"{_plain(config.value)} in {place}"


def _trial(trial: Trial) -> Iterator[Line]:
    if trial == Trial():
        return
    facts = []
    for name in ("args", "stream", "crash", "dump"):
        added: tuple[str, ...] | None = getattr(trial, name)
        if added:
            facts.append(f"{name} {_command(added)}")
    if trial.say is not None:
        facts.append(f"say {words.shown(trial.say)}")
    if trial.ends_when_done:
        facts.append("ends when done")
    for name in ("input_tokens", "output_tokens"):
        if (count := getattr(trial, name)) is not None:
            facts.append(f"{name} {count}")
    yield "Test", "; ".join(facts) or "with settings of its own"
    yield from ((f"  {key}", value) for key, value in trial.settings.items())


def _command(argv: Any) -> str:
    return " ".join(argv)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(value) if isinstance(value, list) else str(value)
