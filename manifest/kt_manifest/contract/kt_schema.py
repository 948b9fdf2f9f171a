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


class KtSection(Strict):
    """`[kt]`: where this engine's additions go."""

    ready: ReadySection | None = None
    send: SendSection | None = None
    defaults: dict[str, Any] | None = None
    """`[kt.defaults]`: settings of this kind of agent. `default_rules` judges them."""
