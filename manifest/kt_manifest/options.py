"""Every setting of an agent instance, declared once: its key, type, default, help, and when it takes effect.

What `config set` accepts, what the documentation lists and what a start understands all read this one table.
"""

from dataclasses import dataclass
from enum import StrEnum

from kt_manifest import value_types
from kt_manifest.value_types import ValueType

PASS_THROUGH = "agent."
UPSTREAM_API_KEY = "metering.upstream_api_key"
UPSTREAM_BASE_URL = "metering.upstream_base_url"
LISTENER_AUTH = "metering.listener_auth"
BASE_URL = "metering.base_url"
ORIGIN = "metering.origin"
MEMORY_DIR = "memory.dir"


class Effect(StrEnum):
    """When a change of a setting takes effect."""

    NEXT_START = "at the next start"
    BY_THE_ENGINE = "set by the engine at each start"
    NOT_YET = "not enforced yet, so refused"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting; `default` is its value when nobody sets it, None for unset."""

    key: str
    type: ValueType
    help: str
    unit: str = ""
    default: str | None = None
    effect: Effect = Effect.NEXT_START


OPTIONS: tuple[Option, ...] = (
    Option(
        "model", value_types.TEXT, "The model that the agent should use; delivered where the adapter maps it."
    ),
    Option(
        UPSTREAM_BASE_URL,
        value_types.URL,
        "The provider's base URL; an engine-observed agent needs it to start.",
    ),
    Option(
        UPSTREAM_API_KEY,
        value_types.CREDENTIAL,
        "The provider's key, put in by the gateway; the agent gets a placeholder. Unset: the agent's own key passes.",
    ),
    Option(
        LISTENER_AUTH,
        value_types.LISTENER_AUTH,
        "Whether a call to the agent's listener needs the token of its Run.",
        default="token",
    ),
    Option(
        BASE_URL,
        value_types.URL,
        "The address of the agent's own listener, with the path of the provider's base URL.",
        effect=Effect.BY_THE_ENGINE,
    ),
    Option(
        ORIGIN,
        value_types.URL,
        "The same address without that path, for clients that add it themselves.",
        effect=Effect.BY_THE_ENGINE,
    ),
    Option(
        MEMORY_DIR,
        value_types.TEXT,
        "The folder of the agent's attached memory.",
        effect=Effect.BY_THE_ENGINE,
    ),
    Option(
        "acp.command", value_types.TEXT, "The program of an ACP agent; delivered where the adapter maps it."
    ),
    Option("acp.args", value_types.ARGUMENTS, "Its arguments; delivered where the adapter maps them."),
    *(
        Option(key, type_, help_, unit, default, Effect.NOT_YET)
        for key, type_, help_, unit, default in (
            (
                "budget.tokens.per_run",
                value_types.COUNT,
                "Limit for one Run, input and output.",
                "tokens",
                None,
            ),
            ("budget.tokens.cumulative", value_types.COUNT, "Limit for the instance's life.", "tokens", None),
            ("budget.dollars.per_run", value_types.DOLLARS, "Limit for one Run.", "dollars", None),
            (
                "budget.dollars.cumulative",
                value_types.DOLLARS,
                "Limit for the instance's life.",
                "dollars",
                None,
            ),
            ("budget.breach_action", value_types.BREACH_ACTION, "What happens at a limit.", "", "pause"),
            ("cost.rate.input", value_types.DOLLARS, "Price of input.", "dollars per 1 000 000 tokens", None),
            (
                "cost.rate.output",
                value_types.DOLLARS,
                "Price of output.",
                "dollars per 1 000 000 tokens",
                None,
            ),
            (
                "cost.rate.cached",
                value_types.DOLLARS,
                "Price of cached input.",
                "dollars per 1 000 000 tokens",
                None,
            ),
        )
    ),
)
BY_KEY: dict[str, Option] = {option.key: option for option in OPTIONS}
SENSITIVE: frozenset[str] = frozenset({UPSTREAM_API_KEY})
