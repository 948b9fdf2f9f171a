"""The shape of `[kt]`: the one optional table in which everything stands that this engine adds to the contract.

Strict as the rest of the manifest (`schema`); what is of more than one type is judged by each table's own rules.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """A table in which an unknown key is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ReadySection(Strict):
    """`[kt.ready]`: how to tell that the agent is ready. `ready_rules` judges what is of more than one type."""

    line: str | None = None
    stream: Literal["stdout", "stderr", "any"] | None = None
    port: Any = None
    http: str | None = None
    command: list[str] | None = None
    deadline_s: Any = None


class SendSection(Strict):
    """`[kt.send]`: messages go to this address instead of the agent's standard input."""

    url: str | None = None


class KtFileSection(Strict):
    """`file = { path, key }` of a rule below `[kt.config]`; a template has no key."""

    path: str | None = None
    key: str | None = None


class KtRuleSection(Strict):
    """`[kt.config."<key>"]`: in which form a value arrives, and where, when the contract has no such target."""

    env: str | None = None
    flag: str | None = None
    file: KtFileSection | None = None
    format: Literal["toml", "json", "yaml", "env", "text"] | None = None
    type: Literal["string", "integer", "number", "boolean", "array", "json"] | None = None
    merge: bool | None = None
    template: str | None = None


class SubstitutionSection(Strict):
    """`[kt.substitution]`: how the agent writes placeholders for variables in its own configuration."""

    syntax: list[Literal["{env:VAR}", "${VAR}", "${VAR:-text}", "$VAR", "%VAR%"]] | None = None


class IsolationSection(Strict):
    """`[kt.isolation]`: which variables get a folder inside the Agent Home."""

    env: dict[str, str] = Field(default_factory=dict)
    undocumented: list[str] = Field(default_factory=list)
    validated: str | None = None


class ConfigSwitchSection(Strict):
    """`config = { env, key, value }` in `[kt.updates]`."""

    env: str | None = None
    key: str | None = None
    value: Any = None


class UpdatesSection(Strict):
    """`[kt.updates]`: how self-update is switched off. `posture_rules` judges what is of more than one type."""

    never: bool | None = None
    env: dict[str, str] = Field(default_factory=dict)
    args: list[str] = Field(default_factory=list)
    config: ConfigSwitchSection | None = None
    switch: str | None = None
    managed_layer: Any = None
    verified: str | None = None


class VersionSection(Strict):
    """`[kt.version]`: how the installed release is asked."""

    command: list[str] | None = None
    pattern: str | None = None


class ReportsSection(Strict):
    """`reports` in `[kt.test]`: the tokens that one life of a self-reporting agent adds up to in a test."""

    input_tokens: Any = None
    output_tokens: Any = None


class TrialSection(Strict):
    """`[kt.test]`: how the Conformance Test Kit gets the agent to work. `trial_rules` judges what is in it."""

    args: list[str] | None = None
    say: str | None = None
    settings: dict[str, str] | None = None
    stream: list[str] | None = None
    crash: list[str] | None = None
    dump: list[str] | None = None
    ends: Literal["when-stopped", "when-done"] | None = None
    reports: ReportsSection | None = None


class KtSection(Strict):
    """`[kt]`: where this engine's additions go."""

    config: dict[str, KtRuleSection] = Field(default_factory=dict)
    ready: ReadySection | None = None
    send: SendSection | None = None
    substitution: SubstitutionSection | None = None
    isolation: IsolationSection | None = None
    updates: UpdatesSection | None = None
    version: VersionSection | None = None
    test: TrialSection | None = None
