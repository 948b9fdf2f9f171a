"""The shape of `adapter.toml` 1.0.0: which keys exist, of which types, with which words.

Strict in everything: an unknown key is an error, and no value is converted. What must be there, and in which order
faults are judged, is `judgement`'s business: every field is optional here, so that a missing one is its to report.
What stands below `[kt]` is `kt_schema`'s.
"""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, ValidationError

from kt_manifest.contract import kt_schema
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


class AdapterSection(Strict):
    """`[adapter]`."""

    kind: str | None = None
    name: str | None = None


class OperationSection(Strict):
    """`[lifecycle.start]` and its like."""

    exec: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)


class LifecycleSection(Strict):
    """`[lifecycle]`."""

    start: OperationSection | None = None
    stop: OperationSection | None = None
    pause: OperationSection | None = None
    resume: OperationSection | None = None


class SupportSection(Strict):
    """`[capabilities.pause]` and `[capabilities.interaction]`."""

    linux: LevelWord = "unsupported"
    macos: LevelWord = "unsupported"
    windows: LevelWord = "unsupported"


class CapabilitiesSection(Strict):
    """`[capabilities]`."""

    pause: SupportSection = SupportSection()
    interaction: SupportSection = SupportSection()


class MeteringSection(Strict):
    """`[metering]`."""

    source: Literal["self-reported", "engine-observed"] | None = None


class InteractionSection(Strict):
    """`[interaction]`."""

    channel: Literal["stdio", "http"] = "stdio"


class FileSection(Strict):
    """`file = { path, key }` in a config rule."""

    path: str | None = None
    key: str | None = None


class RuleSection(Strict):
    """`[config.<key>]`."""

    env: str | None = None
    flag: str | None = None
    file: FileSection | None = None


class Manifest(Strict):
    """The whole document."""

    contract_version: str | None = None
    adapter: AdapterSection | None = None
    lifecycle: LifecycleSection | None = None
    capabilities: CapabilitiesSection | None = None
    metering: MeteringSection | None = None
    interaction: InteractionSection | None = None
    config: dict[str, RuleSection] = Field(default_factory=dict)
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
        return sorted(found, key=lambda misfit: _position(document, misfit.loc))
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


def _position(document: Any, loc: Loc) -> tuple[int, ...]:
    position: list[int] = []
    for part in loc:
        if isinstance(part, int):
            position.append(part)
            document = document[part] if isinstance(document, list) else None
            continue
        keys = list(document) if isinstance(document, dict) else []
        position.append(keys.index(part) if part in keys else len(keys))
        document = document.get(part) if isinstance(document, dict) else None
    return tuple(position)
