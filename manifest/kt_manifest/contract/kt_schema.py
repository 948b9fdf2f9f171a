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


class KtSection(Strict):
    """`[kt]`: where this engine's additions go."""

    ready: ReadySection | None = None
    send: SendSection | None = None
