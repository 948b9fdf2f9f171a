"""The shape of `[kt]`: the one optional table in which everything stands that this engine adds to the contract.

Strict as the rest of the manifest (`schema`); what is of more than one type is judged by each table's own rules.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


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

    ready: ReadySection | None = None
    send: SendSection | None = None
    test: TrialSection | None = None
