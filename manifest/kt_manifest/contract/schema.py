"""The shape of `adapter.toml` 1.0.0: which keys exist, of which types, with which words.

Strict in everything: an unknown key is an error, and no value is converted. What must be there, and in which order
faults are judged, is `judgement`'s business: every field is optional here, so that a missing one is its to report.
What stands below `[kt]` is `kt_schema`'s. Each table also says what editors are told of it (`json_schema`): the
docstring, the descriptions, and `json_schema_extra`, which checks nothing here.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, ValidationError
from pydantic.config import JsonDict

from kt_manifest.contract import capability, kinds, kt_schema, patterns
from kt_manifest.contract.kt_schema import (
    KtFileSection,
    KtRuleSection,
    KtSection,
    ReadySection,
    SendSection,
    Strict,
)

Loc = tuple[str | int, ...]
LevelWord = Literal["guaranteed", "best-effort", "unsupported"]
Carried = Annotated[str, Field(json_schema_extra={"pattern": patterns.CARRIED})]


class AdapterSection(Strict):
    """`[adapter]`: what this adapter is called."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind"]})

    kind: str | None = Field(
        default=None,
        description="The kind that agent instances are of; the built-in kinds are taken.",
        json_schema_extra={"pattern": patterns.KIND, "not": {"enum": [*sorted(kinds.BUILTIN)]}},
    )
    name: str | None = Field(
        default=None,
        description="What people are shown instead of the kind.",
        json_schema_extra={"pattern": patterns.SHOWN_NAME},
    )


class OperationSection(Strict):
    """`[lifecycle.start]` and its like: one program, its arguments and variables."""

    model_config = ConfigDict(json_schema_extra={"required": ["exec"]})

    exec: str | None = Field(
        default=None,
        description="The program: a name that is looked up on the agent's own PATH, or an absolute path.",
        json_schema_extra={"pattern": patterns.PROGRAM},
    )
    args: list[Carried] = Field(
        default_factory=list, description="Its arguments, one string each; no shell looks at them."
    )
    env: dict[str, Carried] = Field(
        default_factory=dict,
        description="Variables on top of what the agent inherits.",
        json_schema_extra={"propertyNames": {"pattern": patterns.VARIABLE_NAME}},
    )


class LifecycleSection(Strict):
    """`[lifecycle]`: how the agent is started and, where it has verbs of its own, stopped, paused and resumed."""

    model_config = ConfigDict(json_schema_extra={"required": ["start"]})

    start: OperationSection | None = Field(default=None, description="How to start the agent.")
    stop: OperationSection | None = Field(
        default=None,
        description="The agent's own verb for stopping; without it, ending its process is the stop.",
    )
    pause: OperationSection | None = Field(default=None, description="The agent's own verb for pausing.")
    resume: OperationSection | None = Field(default=None, description="The agent's own verb for going on.")


class SupportSection(Strict):
    """How well one capability is supported, per system; a system that is not named is unsupported."""

    linux: LevelWord = Field(default="unsupported", description="On Linux.")
    macos: LevelWord = Field(default="unsupported", description="On macOS.")
    windows: LevelWord = Field(default="unsupported", description="On Windows.")


def _supported_somewhere() -> list[JsonDict]:
    better: JsonDict = {"enum": [level for level in get_args(LevelWord) if level != "unsupported"]}
    return [
        {"required": [name], "properties": {name: {"required": [system], "properties": {system: better}}}}
        for name in capability.CAPABILITIES
        for system in capability.SYSTEMS
    ]


class CapabilitiesSection(Strict):
    """`[capabilities]`: what the agent can be asked to do; at least one level better than unsupported."""

    model_config = ConfigDict(json_schema_extra={"anyOf": list(_supported_somewhere())})

    pause: SupportSection = Field(default=SupportSection(), description="To stand still and go on.")
    interaction: SupportSection = Field(
        default=SupportSection(),
        description="To take messages on its standard input, which is connected only then.",
    )


class MeteringSection(Strict):
    """`[metering]`: who counts the tokens."""

    model_config = ConfigDict(json_schema_extra={"required": ["source"]})

    source: Literal["self-reported", "engine-observed"] | None = Field(
        default=None,
        description="The agent, by KTESIO_USAGE lines that it prints, or the engine, at the agent's own listener.",
    )


class InteractionSection(Strict):
    """`[interaction]`: how the agent really takes input; documents, and changes nothing."""

    channel: Literal["stdio", "http"] = Field(default="stdio", description="Its standard input, or HTTP.")


class FileSection(Strict):
    """A TOML file in the Agent Home, and the dotted key in it."""

    model_config = ConfigDict(json_schema_extra={"required": ["path", "key"]})

    path: str | None = Field(
        default=None,
        description="Relative to the Agent Home, inside it.",
        json_schema_extra={"pattern": patterns.HOME_PATH},
    )
    key: str | None = Field(
        default=None,
        description="Dotted, such as llm.model.",
        json_schema_extra={"pattern": patterns.NATIVE_KEY},
    )


class RuleSection(Strict):
    """`[config.<key>]`: where the value of one setting goes; exactly one target."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [name]} for name in ("env", "flag", "file")]}
    )

    env: str | None = Field(
        default=None, description="A variable.", json_schema_extra={"pattern": patterns.VARIABLE_NAME}
    )
    flag: str | None = Field(
        default=None,
        description="A flag: it and the value become two arguments at the end.",
        json_schema_extra={"pattern": patterns.FLAG},
    )
    file: FileSection | None = Field(default=None, description="A key of a file that kt writes.")


class Manifest(Strict):
    """An adapter: what teaches kt one kind of agent (docs/manifest.md)."""

    model_config = ConfigDict(
        json_schema_extra={
            "required": ["contract_version", "adapter", "lifecycle", "capabilities", "metering"],
        }
    )

    contract_version: str | None = Field(
        default=None,
        description='The version of the adapter contract that this file is written for, such as "1.0.0".',
        json_schema_extra={"pattern": patterns.CONTRACT_VERSION},
    )
    adapter: AdapterSection | None = None
    lifecycle: LifecycleSection | None = None
    capabilities: CapabilitiesSection | None = None
    metering: MeteringSection | None = None
    interaction: InteractionSection | None = None
    config: dict[str, RuleSection] = Field(
        default_factory=dict,
        description="Where settings go: one table for each key; a key with dots is quoted.",
        json_schema_extra={"propertyNames": {"minLength": 1}},
    )
    kt: KtSection | None = None


_TABLES: tuple[tuple[tuple[str, ...], type[Strict]], ...] = (
    ((), Manifest),
    (("adapter",), AdapterSection),
    (("lifecycle",), LifecycleSection),
    (("lifecycle", "*"), OperationSection),
    (("capabilities",), CapabilitiesSection),
    (("capabilities", "*"), SupportSection),
    (("metering",), MeteringSection),
    (("interaction",), InteractionSection),
    (("config", "*"), RuleSection),
    (("config", "*", "file"), FileSection),
    (("kt",), KtSection),
    (("kt", "config", "*"), KtRuleSection),
    (("kt", "config", "*", "file"), KtFileSection),
    (("kt", "ready"), ReadySection),
    (("kt", "send"), SendSection),
    (("kt", "substitution"), kt_schema.SubstitutionSection),
    (("kt", "isolation"), kt_schema.IsolationSection),
    (("kt", "updates"), kt_schema.UpdatesSection),
    (("kt", "updates", "config"), kt_schema.ConfigSwitchSection),
    (("kt", "version"), kt_schema.VersionSection),
    (("kt", "test"), kt_schema.TrialSection),
    (("kt", "test", "reports"), kt_schema.ReportsSection),
)


@dataclass(frozen=True, slots=True)
class Misfit:
    """One place where a document does not have the shape; `kind` is "key", "word" or "type"."""

    kind: str
    loc: Loc
    value: Any
    wanted: str


def misfits(document: dict[str, Any]) -> list[Misfit]:
    """Return every place where the document does not fit, in the order of the document."""
    try:
        Manifest.model_validate(document)
    except ValidationError as error:
        found = [_misfit(detail) for detail in error.errors(include_url=False)]
        orders: dict[int, dict[str, int]] = {}
        return sorted(found, key=lambda misfit: _position(document, misfit.loc, orders))
    return []


def known_keys(loc: Loc) -> tuple[str, ...]:
    """Return the keys that the table at `loc` may have."""
    for pattern, table in _TABLES:
        if len(pattern) == len(loc) and all(
            want in ("*", got) for want, got in zip(pattern, loc, strict=True)
        ):
            return tuple(table.model_fields)
    return ()


def _misfit(detail: Any) -> Misfit:
    # A key of a dict is marked by a last element that the document does not have.
    loc: Loc = tuple(part for part in detail["loc"] if part != "[key]")
    if detail["type"] == "extra_forbidden":
        return Misfit("key", loc, detail["input"], "a known key")
    if detail["type"] == "literal_error":
        words = str(detail["ctx"]["expected"])
        return Misfit("word" if isinstance(detail["input"], str) else "type", loc, detail["input"], words)
    return Misfit("type", loc, detail["input"], _WANTED.get(detail["type"], _otherwise(detail["type"])))


_WANTED = {
    "string_type": "a string",
    "list_type": "an array of strings",
    "dict_type": "a table",
    "bool_type": "true or false",
}


def _otherwise(error_type: str) -> str:
    return "a table" if error_type.startswith("model") else "Unicode text"


def _position(document: Any, loc: Loc, orders: dict[int, dict[str, int]]) -> tuple[int, ...]:
    """Return where a place stands; `orders` keeps the order of each table's keys, since there may be many."""
    position: list[int] = []
    for part in loc:
        if isinstance(part, int):
            position.append(part)
            document = document[part] if isinstance(document, list) else None
            continue
        table = document if isinstance(document, dict) else {}
        if id(table) not in orders or not table:
            orders[id(table)] = {key: at for at, key in enumerate(table)}
        position.append(orders[id(table)].get(part, len(table)))
        document = table.get(part)
    return tuple(position)
