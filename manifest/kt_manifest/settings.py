"""Every setting of an agent instance, declared once: its key, type, default, help, and when it takes effect.

What `config set` accepts, what the documentation lists and what a start understands all read this one table.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kt_manifest import nearest, secrets, value_types, words
from kt_manifest.value_types import Unfit, Value, ValueType

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


class UnknownKey(Exception):
    """There is no setting of this name."""

    exit_code = 2

    def __init__(self, key: str) -> None:
        self.key = key
        self.got = words.shown(key)
        self.suggestion = nearest.nearest(key, BY_KEY)
        self.wanted = "a key of docs/configuration.md, or agent.NAME for a variable of the agent"
        self.do = f"did you mean {self.suggestion}?" if self.suggestion else "no close match"
        super().__init__(f"unknown config key: got {self.got}, wanted {self.wanted}; {self.do}")


class ReservedKey(Exception):
    """The engine sets this key itself."""

    exit_code = 2

    def __init__(self, key: str) -> None:
        self.key = key
        self.got = key
        self.wanted = "a key that operators set"
        self.do = "leave it: the engine delivers it at each start"
        if key in (BASE_URL, ORIGIN):
            self.do += f"; the provider's address is {UPSTREAM_BASE_URL}"
        super().__init__(f"reserved config key: got {key}, wanted {self.wanted}; {self.do}")


class NotEnforcedYet(Exception):
    """The key is known, but nothing would act on it; accepting it would promise a limit that is none."""

    exit_code = 5

    def __init__(self, key: str) -> None:
        self.key = key
        self.got = key
        self.wanted = "a key that this version acts on"
        self.do = "leave it unset; an accepted limit that stops nothing would be worse than none"
        super().__init__(f"{key} is not enforced yet: got {key}, wanted {self.wanted}; {self.do}")


class InvalidValue(Exception):
    """The value is not of the key's type."""

    exit_code = 2

    def __init__(self, key: str, *, got: str, wanted: str) -> None:
        self.key = key
        self.got = got
        self.wanted = wanted
        self.do = f"see {words.shown(key)[1:-1]} in docs/configuration.md"
        super().__init__(f"invalid value for {words.shown(key)[1:-1]}: got {got}, wanted {wanted}; {self.do}")


def check(key: str, text: str) -> Value:
    """Return the value that `config set KEY TEXT` stores.

    Raises:
        UnknownKey, ReservedKey: the key cannot be set.
        InvalidValue: the text is not of the key's type, or a mask that was shown and typed back.
        NotEnforcedYet: key and value are good, but no limit would follow from them.
    """
    if key.startswith(PASS_THROUGH):
        return _check_pass_through(key, text)
    option = BY_KEY.get(key)
    if option is None:
        raise UnknownKey(key)
    if option.effect is Effect.BY_THE_ENGINE:
        raise ReservedKey(key)
    value = _check_text(option, text)
    if option.effect is Effect.NOT_YET:
        raise NotEnforcedYet(key)
    return value


def check_stored(key: str, value: Value) -> Value:
    """Return a value as a start may use it, whoever wrote it into the file; raises as `check` does."""
    if isinstance(value, str):
        return check(key, value)
    option = BY_KEY.get(key)
    if option is not None and option.type is not value_types.ARGUMENTS:
        raise InvalidValue(key, got="an array", wanted=option.type.wanted)
    for item in value:
        _refuse_unusable(key, item)
    if option is None:
        check(key, "")  # a variable's value is text too
        raise InvalidValue(key, got="an array", wanted="text")
    return value


def shown(key: str, value: Value) -> Value:
    """Return what may be shown of a setting: references and keys are masked."""
    return secrets.MASK if key in SENSITIVE else secrets.mask(value)


def is_unvalidated(key: str) -> bool:
    """Tell whether a key is passed through to the agent as it is."""
    return key.startswith(PASS_THROUGH)


def markdown(options: Iterable[Option] = OPTIONS) -> str:
    """Return `docs/configuration.md`'s table of keys."""
    rows = ["| key | type | unit | default | takes effect | meaning |", "|---|---|---|---|---|---|"]
    for option in options:
        default = f"`{option.default}`" if option.default else "unset"
        cells = (
            f"`{option.key}`",
            option.type.name,
            option.unit or "–",
            default,
            option.effect.value,
            option.help,
        )
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def _check_pass_through(key: str, text: str) -> Value:
    name = key.removeprefix(PASS_THROUGH)
    fault = words.fault_in_environment_name(name)
    if fault is None and not all(name.split(".")):
        fault = "an empty segment between dots"
    if fault:
        raise InvalidValue(key, got=fault, wanted="agent.NAME, where NAME can name an environment variable")
    _refuse_unusable(key, text)
    return text


def _check_text(option: Option, text: str) -> Value:
    _refuse_unusable(option.key, text)
    if secrets.is_reference(text):
        if option.type.takes_reference:
            return text
        raise InvalidValue(option.key, got="a secret reference", wanted=option.type.wanted)
    try:
        return option.type.parse(text)
    except Unfit as unfit:
        raise InvalidValue(option.key, got=str(unfit), wanted=option.type.wanted) from unfit


def _refuse_unusable(key: str, text: str) -> None:
    if fault := words.fault_in_value(text):
        raise InvalidValue(key, got=fault, wanted="text")
    if text == secrets.MASK:
        raise InvalidValue(
            key, got="the mask that is shown instead of a secret", wanted="secret:NAME or a value"
        )
