"""The JSON of what registration freezes: one object per instance, kept in the store.

Additive within version 1: a reader ignores fields that it does not know.
"""

import json
from functools import lru_cache
from typing import Any

from kt_manifest import exit_codes
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.capability import CAPABILITIES, SYSTEMS, Declaration, Level, Support
from kt_manifest.contract.declared_posture import Posture
from kt_manifest.contract.snapshot import (
    CHANNELS,
    FORMATS,
    SOURCES,
    STREAMS,
    TYPES,
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

VERSION = 1


class SnapshotUnreadable(Exception):
    """What was frozen at registration can no longer be read."""

    exit_code = exit_codes.FAILED

    def __init__(self, got: str) -> None:
        self.got = got
        self.wanted = f"an adapter snapshot of version {VERSION}"
        self.do = "remove and register the agent again, or use the version of kt that registered it"
        super().__init__(f"unreadable adapter snapshot: got {got}, wanted {self.wanted}; {self.do}")


def write(adapter: Adapter) -> str:
    """Return the snapshot as one JSON object; the same adapter gives the same text."""
    return json.dumps(_plain(adapter), ensure_ascii=True, separators=(",", ":"))


@lru_cache(maxsize=1024)
def read(text: str) -> Adapter:
    """Read a snapshot; the same text, which never changes once it is frozen, is read once.

    Raises:
        SnapshotUnreadable: it is no snapshot, or of a later version than this reader knows.
    """
    try:
        facts = json.loads(text)
        version = facts["schema_version"]
        if version != VERSION:
            raise SnapshotUnreadable(f"version {version!r}"[:80])
        return _adapter(facts)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SnapshotUnreadable(f"a damaged one ({type(error).__name__}: {error})"[:200]) from error


def _plain(adapter: Adapter) -> dict[str, Any]:
    templates = {name: getattr(adapter, name) for name in ("start", "stop", "pause", "resume")}
    declared = adapter.posture.to_json()
    return (
        {
            "schema_version": VERSION,
            "kind": adapter.kind,
            "display_name": adapter.display_name,
            "contract_version": adapter.contract_version,
            "lifecycle": {
                name: {"exec": template.exec, "args": list(template.args), "env": dict(template.env)}
                for name, template in templates.items()
                if template is not None
            },
            "capabilities": {
                name: {system: getattr(adapter.declaration, name).on(system).value for system in SYSTEMS}
                for name in CAPABILITIES
            },
            "metering_source": adapter.metering_source,
            "channel": adapter.channel,
            **({"send_url": adapter.send_url} if adapter.send_url is not None else {}),
            "mapping": [
                {"key": rule.key, **_plain_target(rule.target), **_plain_shape(rule.shape)}
                for rule in adapter.mapping
            ],
            **({"types": dict(adapter.types)} if adapter.types else {}),
        }
        | ({} if adapter.ready is None else {"ready": _plain_ready(adapter.ready)})
        | ({"posture": declared} if declared else {})
        | ({"defaults": dict(adapter.defaults)} if adapter.defaults else {})
    )


def _plain_ready(ready: Ready) -> dict[str, Any]:
    command = None if ready.command is None else list(ready.command)
    facts = {"line": ready.line, "port": ready.port, "http": ready.http, "command": command}
    there = {name: value for name, value in facts.items() if value is not None}
    return there | {"stream": ready.stream, "deadline_s": ready.deadline_s}


def _plain_target(target: Target) -> dict[str, Any]:
    match target:
        case EnvTarget(name):
            return {"env": name}
        case FlagTarget(flag):
            return {"flag": flag}
        case FileTarget(path, key):
            return {"file": {"path": path, "key": key}}


def _plain_shape(shape: Shape) -> dict[str, Any]:
    if shape == Shape():
        return {}
    facts = {"format": shape.format, "merge": shape.merge}
    return {"shape": facts if shape.template is None else {**facts, "template": shape.template}}


def _adapter(facts: dict[str, Any]) -> Adapter:
    templates = {
        name: _template(facts["lifecycle"].get(name)) for name in ("start", "stop", "pause", "resume")
    }
    declared = {name: _support(facts["capabilities"].get(name, {})) for name in CAPABILITIES}
    return Adapter(
        kind=_text(facts["kind"]),
        display_name=None if facts.get("display_name") is None else _text(facts["display_name"]),
        contract_version=facts.get("contract_version"),
        declaration=Declaration(**declared),
        metering_source=_one_of(facts["metering_source"], SOURCES),
        channel=_one_of(facts.get("channel", "stdio"), CHANNELS),
        send_url=None if facts.get("send_url") is None else str(facts["send_url"]),
        mapping=tuple(
            Rule(_text(rule["key"]), _target(rule), _shape(rule.get("shape"))) for rule in facts["mapping"]
        ),
        types={_text(key): _one_of(type_, TYPES) for key, type_ in facts.get("types", {}).items()},
        ready=None if facts.get("ready") is None else _ready(facts["ready"]),
        start=templates["start"],
        stop=templates["stop"],
        pause=templates["pause"],
        resume=templates["resume"],
        posture=Posture.from_json(facts.get("posture", {})),
        defaults={_text(key): _value(value) for key, value in facts.get("defaults", {}).items()},
    )


def _ready(facts: dict[str, Any]) -> Ready:
    texts = {name: _text(facts[name]) for name in ("line", "port", "http") if name in facts}
    command = tuple(_text(word) for word in facts["command"]) if "command" in facts else None
    return Ready(
        **texts,
        command=command,
        stream=_one_of(facts["stream"], STREAMS),
        deadline_s=float(facts["deadline_s"]),
    )


def _template(facts: dict[str, Any] | None) -> Template | None:
    if facts is None:
        return None
    return Template(
        exec=_text(facts["exec"]),
        args=tuple(_text(argument) for argument in facts["args"]),
        env={_text(name): _text(value) for name, value in facts["env"].items()},
    )


def _support(facts: dict[str, Any]) -> Support:
    return Support(**{system: Level(facts[system]) for system in SYSTEMS if system in facts})


def _target(facts: dict[str, Any]) -> Target:
    if "env" in facts:
        return EnvTarget(_text(facts["env"]))
    if "flag" in facts:
        return FlagTarget(_text(facts["flag"]))
    return FileTarget(_text(facts["file"]["path"]), _text(facts["file"]["key"]))


def _shape(facts: dict[str, Any] | None) -> Shape:
    if facts is None:
        return Shape()
    template = facts.get("template")
    return Shape(
        format=_one_of(facts["format"], FORMATS),
        merge=facts["merge"] is True,
        template=None if template is None else _text(template),
    )


def _value(value: object) -> Value:
    return [_text(item) for item in value] if isinstance(value, list) else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"got {type(value).__name__}, wanted a string")
    return value


def _one_of(value: object, wanted: tuple[str, ...]) -> str:
    if value not in wanted:
        raise ValueError(f"got {value!r}, wanted one of {', '.join(wanted)}")
    return str(value)
