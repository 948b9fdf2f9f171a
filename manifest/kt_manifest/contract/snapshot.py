"""What registration freezes: everything that is known of an agent's adapter.

Once an instance is registered, nothing looks at its manifest again: editing, moving or deleting the file changes
nothing. Its JSON is `snapshot_document`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kt_manifest import words
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract import declared_posture
from kt_manifest.contract.capability import Declaration
from kt_manifest.contract.declared_posture import Posture
from kt_manifest.contract.trial import Trial

SELF_REPORTED = "self-reported"
ENGINE_OBSERVED = "engine-observed"
SOURCES = (SELF_REPORTED, ENGINE_OBSERVED)
CHANNELS = ("stdio", "http")


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
    """Deliver into a file: `path` relative to the Agent Home, `/` between its names; `key` dotted.

    `key` is empty where a template says the whole of the file.
    """

    path: str
    key: str


Target = EnvTarget | FlagTarget | FileTarget


FORMATS = ("toml", "json", "yaml", "env", "text")
TYPES = ("string", "integer", "number", "boolean", "array", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """In which form a value arrives; without anything said it is the contract's own: TOML, written whole.

    `template` is a text with `${key}` references that is delivered in place of the value, in the format `format`.
    `merge` puts values into the file that is there, instead of writing it whole.
    """

    format: str = "toml"
    merge: bool = False
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Where the value of one unified key goes; one key may have several rules."""

    key: str
    target: Target
    shape: Shape = Shape()


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
    built-in kind. `mapping` is in the order of the manifest. `types` says which keys are more than text where the
    target can tell: each is one of `TYPES`. `defaults` are settings, weaker than anybody's. `trial` alone
    is not frozen: only tests are interested.
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
    types: Mapping[str, str] = field(default_factory=dict)
    contract_version: str | None = None
    ready: Ready | None = None
    posture: Posture = declared_posture.NOTHING
    defaults: Mapping[str, Value] = field(default_factory=dict)
    trial: Trial = field(default=Trial(), compare=False)

    def maps(self, key: str) -> bool:
        """Tell whether a unified key is delivered anywhere."""
        return any(rule.key == key for rule in self.mapping)

    def goes_unseen(self) -> bool:
        """Tell whether the engine should meter this agent's traffic, but nothing tells the agent where to send it."""
        led = self.maps("metering.base_url") or self.maps("metering.origin")
        return self.metering_source == ENGINE_OBSERVED and not led

    def to_json(self) -> str:
        """Return the snapshot as one JSON object; the same adapter gives the same text."""
        from kt_manifest.contract import snapshot_document

        return snapshot_document.write(self)

    @classmethod
    def from_json(cls, text: str) -> "Adapter":
        """Read a snapshot. Raises `snapshot_document.SnapshotUnreadable`."""
        from kt_manifest.contract import snapshot_document

        return snapshot_document.read(text)


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
