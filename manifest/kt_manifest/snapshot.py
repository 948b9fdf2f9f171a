"""What registration freezes: everything that is known of an agent's adapter, and its JSON.

Once an instance is registered, nothing looks at its manifest again: editing, moving or deleting the file changes
nothing. The JSON is additive within version 1: a reader ignores fields that it does not know.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kt_manifest import words
from kt_manifest.capability import CAPABILITIES, SYSTEMS, Declaration, Level, Support

VERSION = 1
SELF_REPORTED = "self-reported"
ENGINE_OBSERVED = "engine-observed"
SOURCES = (SELF_REPORTED, ENGINE_OBSERVED)
CHANNELS = ("stdio", "http")


class SnapshotUnreadable(Exception):
    """What was frozen at registration can no longer be read."""

    exit_code = 1

    def __init__(self, got: str) -> None:
        self.got = got
        self.wanted = f"an adapter snapshot of version {VERSION}"
        self.do = "remove and register the agent again, or use the version of kt that registered it"
        super().__init__(f"unreadable adapter snapshot: got {got}, wanted {self.wanted}; {self.do}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How to run one program: `exec` is a bare name or an absolute path."""

    exec: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnvTarget:
    """Deliver as an environment variable."""

    name: str


@dataclass(frozen=True, slots=True)
class FlagTarget:
    """Deliver as two arguments, the flag and the value."""

    flag: str


@dataclass(frozen=True, slots=True)
class FileTarget:
    """Deliver into a TOML file: `path` relative to the Agent Home, `/` between its names; `key` dotted."""

    path: str
    key: str


Target = EnvTarget | FlagTarget | FileTarget


@dataclass(frozen=True, slots=True)
class Rule:
    """Where the value of one unified key goes; one key may have several rules."""

    key: str
    target: Target


READY_DEADLINE_S = 60.0
STREAMS = ("stdout", "stderr", "any")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """How to tell that an agent is ready: exactly one of `line`, `port`, `http` and `command` is there.

    `line` is a `line_pattern`, looked for in `stream`; `port` a number or `${NAME}`, a variable of the agent; `http` a
    URL on loopback, in which `${NAME}` may stand; `command` a program as in `exec`, and its arguments.
    """

    line: str | None = None
    stream: str = "any"
    port: str | None = None
    http: str | None = None
    command: tuple[str, ...] | None = None
    deadline_s: float = READY_DEADLINE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """Everything frozen at registration.

    `start` is None for a kind that cannot launch. `contract_version` is what the manifest declared, None for a
    built-in kind. `mapping` is in the order of the manifest.
    """

    kind: str
    display_name: str | None = None
    start: Template | None = None
    stop: Template | None = None
    pause: Template | None = None
    resume: Template | None = None
    declaration: Declaration
    metering_source: str
    channel: str = "stdio"
    send_url: str | None = None
    mapping: tuple[Rule, ...] = ()
    contract_version: str | None = None
    ready: Ready | None = None

    def maps(self, key: str) -> bool:
        """Tell whether a unified key is delivered anywhere."""
        return any(rule.key == key for rule in self.mapping)

    def goes_unseen(self) -> bool:
        """Tell whether the engine should meter this agent's traffic, but nothing tells the agent where to send it."""
        led = self.maps("metering.base_url") or self.maps("metering.origin")
        return self.metering_source == ENGINE_OBSERVED and not led

    def to_json(self) -> str:
        """Return the snapshot as one JSON object; the same adapter gives the same text."""
        return json.dumps(_plain(self), ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Adapter":
        """Read a snapshot.

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


def fault_in_exec(program: object) -> str | None:
    """Say why `program` is neither a bare name nor an absolute path (either system's); None when it is one."""
    if not isinstance(program, str):
        return None  # a wrong type, judged as such
    if not program.strip():
        return "no exec" if not program else "exec of spaces only"
    if fault := words.fault_in_value(program):
        return f"exec with {fault}"
    if program in (".", "..") or not (_is_absolute(program) or not set(program) & set("/\\")):
        return f"exec = {words.shown(program)}, which is relative to a folder"
    return None


def _is_absolute(program: str) -> bool:
    windows = (
        len(program) > 2 and program[0].isascii() and program[0].isalpha() and program[1:3] in (":\\", ":/")
    )
    return program.startswith(("/", "\\\\")) or windows


def _plain(adapter: Adapter) -> dict[str, Any]:
    templates = {name: getattr(adapter, name) for name in ("start", "stop", "pause", "resume")}
    return {
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
        "mapping": [{"key": rule.key, **_plain_target(rule.target)} for rule in adapter.mapping],
    } | ({} if adapter.ready is None else {"ready": _plain_ready(adapter.ready)})


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
        mapping=tuple(Rule(_text(rule["key"]), _target(rule)) for rule in facts["mapping"]),
        ready=None if facts.get("ready") is None else _ready(facts["ready"]),
        **templates,
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


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"got {type(value).__name__}, wanted a string")
    return value


def _one_of(value: object, wanted: tuple[str, ...]) -> str:
    if value not in wanted:
        raise ValueError(f"got {value!r}, wanted one of {', '.join(wanted)}")
    return str(value)
