"""The shape of `[kt]`: the one optional table in which everything stands that this engine adds to the contract.

Strict as the rest of the manifest (`schema`); what is of more than one type is judged by each table's own rules.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kt_manifest.contract import patterns


class Strict(BaseModel):
    """A table in which an unknown key is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ReadySection(Strict):
    """`[kt.ready]`: how to tell that the agent is ready; exactly one of line, port, http and command."""

    # What is of more than one type is `Any` here, and judged by `ready_rules`.
    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [way]} for way in ("line", "port", "http", "command")],
            "dependentRequired": {"stream": ["line"]},
        }
    )

    line: str | None = Field(
        default=None,
        description="A regular expression (RE2), looked for in each line that the agent prints.",
        json_schema_extra={"minLength": 1, "maxLength": 500},
    )
    stream: Literal["stdout", "stderr", "any"] | None = Field(
        default=None, description="Where the line is looked for; any unless said."
    )
    port: Any = Field(
        default=None,
        description="A TCP port on loopback that accepts: a number, or ${NAME}, a variable of the agent.",
        json_schema_extra={
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 65535},
                {"type": "string", "pattern": patterns.PORT_VARIABLE},
            ]
        },
    )
    http: str | None = Field(
        default=None,
        description="A plain http URL on loopback with a port that answers 2xx or 3xx; ${NAME} may stand in it.",
        json_schema_extra={"pattern": patterns.URL_WITH_VARIABLES},
    )
    command: list[str] | None = Field(
        default=None,
        description="A program that exits with 0, and its arguments.",
        json_schema_extra={"minItems": 1, "items": {"type": "string", "pattern": patterns.CARRIED}},
    )
    deadline_s: Any = Field(
        default=None,
        description="How many seconds it may take; 60 unless said.",
        json_schema_extra={"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
    )


class SendSection(Strict):
    """`[kt.send]`: messages go to this address instead of the agent's standard input."""

    model_config = ConfigDict(json_schema_extra={"required": ["url"]})

    url: str | None = Field(
        default=None,
        description="A plain http URL of this machine, with a port.",
        json_schema_extra={"pattern": patterns.LOOPBACK_URL},
    )


class KtFileSection(Strict):
    """A file in the Agent Home, and the dotted key in it; a template has no key."""

    path: str | None = Field(
        default=None,
        description="Relative to the Agent Home, inside it.",
        json_schema_extra={"pattern": patterns.HOME_PATH},
    )
    key: str | None = Field(
        default=None, description="Dotted, such as llm.model; of an env file, a variable."
    )


class KtRuleSection(Strict):
    """`[kt.config."<key>"]`: in which form a value arrives, and where, when the contract has no such target."""

    env: str | None = Field(
        default=None, description="A variable.", json_schema_extra={"pattern": patterns.VARIABLE_NAME}
    )
    flag: str | None = Field(default=None, description="Not for this table: a flag is [config.<key>]'s.")
    file: KtFileSection | None = Field(default=None, description="A file in the Agent Home.")
    format: Literal["toml", "json", "yaml", "env", "text"] | None = Field(
        default=None, description="How the file, or the text of a template, is written."
    )
    type: Literal["string", "integer", "number", "boolean", "array", "json"] | None = Field(
        default=None, description="What the value is, where the target can tell; a string unless said."
    )
    merge: bool | None = Field(default=None, description="Whether values go into the file that is there.")
    template: str | None = Field(
        default=None, description="A text with ${key} in it that is delivered in place of the value."
    )


class SubstitutionSection(Strict):
    """`[kt.substitution]`: how the agent writes placeholders for variables in its own configuration."""

    syntax: list[Literal["{env:VAR}", "${VAR}", "${VAR:-text}", "$VAR", "%VAR%"]] | None = Field(
        default=None, description="Every way of writing one that the agent replaces."
    )


class IsolationSection(Strict):
    """`[kt.isolation]`: which variables get a folder inside the Agent Home."""

    env: dict[str, str] = Field(
        default_factory=dict,
        description="Variable and folder, relative to the Agent Home.",
        json_schema_extra={"propertyNames": {"pattern": patterns.VARIABLE_NAME}},
    )
    undocumented: list[str] = Field(
        default_factory=list, description="Which of the variables the agent's authors do not document."
    )
    validated: str | None = Field(
        default=None, description="The release of the agent on which they were last seen to work."
    )


class ConfigSwitchSection(Strict):
    """A value in the agent's configuration that switches its self-update off: in a variable or in a file."""

    env: str | None = Field(default=None, description="The variable that holds the JSON.")
    file: str | None = Field(
        default=None, description="A .json, .toml, .yaml or .yml file in the Agent Home."
    )
    key: str | None = Field(default=None, description="The dotted key.")
    value: Any = Field(
        default=None,
        description="A string, a boolean or an integer.",
        json_schema_extra={"type": ["string", "boolean", "integer"]},
    )


class UpdatesSection(Strict):
    """`[kt.updates]`: how self-update is switched off."""

    # What is of more than one type is `Any` here, and judged by `posture_rules`.
    never: bool | None = Field(default=None, description="True for an agent that does not update itself.")
    env: dict[str, str] = Field(
        default_factory=dict,
        description="Variables that switch it off.",
        json_schema_extra={"propertyNames": {"pattern": patterns.VARIABLE_NAME}},
    )
    args: list[str] = Field(default_factory=list, description="Arguments that switch it off.")
    config: ConfigSwitchSection | None = Field(
        default=None, description="A value of its configuration that does."
    )
    switch: str | None = Field(default=None, description="The same in words, for people.")
    managed_layer: Any = Field(
        default=None,
        description="Whether a managed layer of the agent's configuration can turn it on again; true, false or words.",
        json_schema_extra={"type": ["boolean", "string"]},
    )
    verified: str | None = Field(default=None, description="The release on which that was last tried.")


class VersionSection(Strict):
    """`[kt.version]`: how the installed release is asked."""

    command: list[str] | None = Field(default=None, description="A program, and its arguments.")
    pattern: str | None = Field(
        default=None, description="RE2 with one group: the release in what it prints."
    )


class ReportsSection(Strict):
    """`reports` in `[kt.test]`: the tokens that one life of a self-reporting agent adds up to in a test."""

    input_tokens: Any = Field(
        default=None, description="Input, all of it.", json_schema_extra={"type": "integer", "minimum": 0}
    )
    output_tokens: Any = Field(
        default=None, description="Output, all of it.", json_schema_extra={"type": "integer", "minimum": 0}
    )


class TrialSection(Strict):
    """`[kt.test]`: how the Conformance Test Kit gets the agent to work."""

    args: list[str] | None = Field(
        default=None, description="Arguments with which it works, and calls its model."
    )
    say: str | None = Field(default=None, description="A message that makes it work.")
    settings: dict[str, str] | None = Field(default=None, description="Settings of the test.")
    stream: list[str] | None = Field(default=None, description="Arguments with which it streams.")
    crash: list[str] | None = Field(default=None, description="Arguments with which it fails by itself.")
    dump: list[str] | None = Field(
        default=None, description="Arguments with which it writes what it was given into a file."
    )
    outside: list[str] | None = Field(
        default=None,
        description="What it may write outside of its isolated folders: paths relative to its home, tmp for TMPDIR.",
    )
    ends: Literal["when-stopped", "when-done"] | None = Field(
        default=None, description="When it ends by itself."
    )
    reports: ReportsSection | None = Field(default=None, description="What one life of it adds up to.")


class KtSection(Strict):
    """`[kt]`: where this engine's additions go."""

    config: dict[str, KtRuleSection] = Field(
        default_factory=dict, description="In which form the value of a setting arrives, by key."
    )
    ready: ReadySection | None = None
    send: SendSection | None = None
    substitution: SubstitutionSection | None = None
    isolation: IsolationSection | None = None
    updates: UpdatesSection | None = None
    version: VersionSection | None = None
    defaults: dict[str, Any] | None = Field(
        default=None,
        description="[kt.defaults]: what this kind of agent is set to, unless somebody sets it otherwise.",
    )
    test: TrialSection | None = None
