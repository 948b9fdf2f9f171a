"""Every setting of an agent instance, declared once: its key, type, default, help, and when it takes effect.

What `config set` accepts, what the documentation lists and what a start understands all read this one table.
"""

from dataclasses import dataclass
from enum import StrEnum

from kt_manifest.configuration import value_types
from kt_manifest.configuration.value_types import ValueType

PASS_THROUGH = "agent."
UPSTREAM_API_KEY = "metering.upstream_api_key"
UPSTREAM_BASE_URL = "metering.upstream_base_url"
LISTENER_AUTH = "metering.listener_auth"
BASE_URL = "metering.base_url"
ORIGIN = "metering.origin"
MEMORY_DIR = "memory.dir"
RESTART_POLICY = "restart.policy"
RESTART_LIMIT = "restart.limit"
RESTART_WINDOW = "restart.window"
RESTART_RESET_AFTER = "restart.reset_after"
AUTOSTART = "autostart"
PAUSE_HOLD_S = "pause.hold_s"
ENV_INHERIT = "env.inherit"
LOGS_CAP = "logs.cap"
LIMITS = (LIMIT_MEMORY, LIMIT_CPU, LIMIT_PIDS, LIMIT_NOFILE) = (
    "limits.memory",
    "limits.cpu",
    "limits.pids",
    "limits.nofile",
)


class Effect(StrEnum):
    """When a change of a setting takes effect."""

    AT_ONCE = "at once"
    NEXT_START = "at the next start"
    BY_THE_ENGINE = "set by the engine at each start"
    NOT_YET = "not enforced yet, so refused"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting; `default` is its value when nobody sets it, None for unset.

    `by_adapter`: whether an adapter may bring a default of its own. It may not where that would give the agent more
    than the operator gave: the caller's variables, a key, a listener without a token, commands of the engine.
    """

    key: str
    type: ValueType
    help: str
    unit: str = ""
    default: str | None = None
    effect: Effect = Effect.NEXT_START
    by_adapter: bool = True


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
        by_adapter=False,
    ),
    Option(
        LISTENER_AUTH,
        value_types.LISTENER_AUTH,
        "Whether a call to the agent's listener needs the token of its Run.",
        default="token",
        by_adapter=False,
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
    Option(
        RESTART_POLICY,
        value_types.RESTART_POLICY,
        "Which ends that nobody asked for bring the agent back: none, a failure (a non-zero code, a signal), or all.",
        default="on-failure",
        effect=Effect.AT_ONCE,
    ),
    Option(
        RESTART_LIMIT,
        value_types.FAILURES,
        "How many failures within the window park the agent as failed.",
        default="5",
        effect=Effect.AT_ONCE,
    ),
    Option(
        RESTART_WINDOW,
        value_types.SECONDS,
        "The sliding window in which failures count.",
        "seconds",
        "600",
        Effect.AT_ONCE,
    ),
    Option(
        RESTART_RESET_AFTER,
        value_types.SECONDS,
        "How long a Run must have lived for the back-off to begin anew.",
        "seconds",
        "600",
        Effect.AT_ONCE,
    ),
    Option(
        AUTOSTART,
        value_types.SWITCH,
        "Whether the agent is brought back after the machine was restarted, if it was wanted then.",
        default="false",
        effect=Effect.AT_ONCE,
    ),
    Option(
        PAUSE_HOLD_S,
        value_types.SECONDS,
        "How long the gateway holds the calls of a paused agent before it refuses them.",
        "seconds",
        "300",
        Effect.AT_ONCE,
    ),
    Option(
        LIMIT_MEMORY, value_types.BYTES, "The memory that the agent's processes may use together.", "bytes"
    ),
    Option(LIMIT_CPU, value_types.CORES, "The processor time that they may use together.", "cores"),
    Option(LIMIT_PIDS, value_types.PROCESSES, "How many processes and threads they may be.", "processes"),
    Option(
        LIMIT_NOFILE, value_types.DESCRIPTORS, "How many files each of them may have open.", "descriptors"
    ),
    Option(
        ENV_INHERIT,
        value_types.VARIABLES,
        "Which variables of whoever types `start` reach the agent; unset: @default, a list that kt config keys shows.",
        by_adapter=False,
    ),
    Option(
        LOGS_CAP,
        value_types.BYTES,
        "How much of an agent's output is kept on disk, over all its Runs.",
        "bytes",
        "256M",
        Effect.AT_ONCE,
    ),
    *(
        Option(key, value_types.COMMAND, help_, effect=Effect.AT_ONCE, by_adapter=False)
        for key, help_ in (
            ("hooks.on_start", "A command that is run when the agent is running."),
            ("hooks.on_stop", "A command that is run when the agent has stopped."),
            ("hooks.on_crash", "A command that is run when the agent has failed."),
            ("hooks.on_any", "A command that is run at every change of the agent's state."),
        )
    ),
    Option(
        "hooks.on_breach",
        value_types.COMMAND,
        "A command that is run when a budget is used up.",
        effect=Effect.NOT_YET,
        by_adapter=False,
    ),
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
BY_MAPPING: frozenset[str] = frozenset({"model", "acp.command", "acp.args"})
"""Settings that mean nothing to the engine: only an adapter that maps them delivers them."""
BY_ENGINE: frozenset[str] = frozenset({UPSTREAM_BASE_URL, UPSTREAM_API_KEY, LISTENER_AUTH, *LIMITS})
"""Settings that take effect at a start through the gateway and the keeper, and not through what is started."""
BY_KEY: dict[str, Option] = {option.key: option for option in OPTIONS}
LIVE: frozenset[str] = frozenset(option.key for option in OPTIONS if option.effect is Effect.AT_ONCE)
"""Settings that are read whenever they are needed."""
SENSITIVE: frozenset[str] = frozenset({UPSTREAM_API_KEY})
