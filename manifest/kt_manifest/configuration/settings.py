"""What may be set, and to what: the judge over keys and values, whoever wrote them.

The settings themselves are declared in `options`, and are reached from here as well.
"""

from collections.abc import Callable

from kt_manifest import exit_codes, nearest, words
from kt_manifest.configuration import clear_keys, options, secrets, settings_document, slips
from kt_manifest.configuration.options import (
    BASE_URL,
    BY_KEY,
    ORIGIN,
    PASS_THROUGH,
    UPSTREAM_API_KEY,
    UPSTREAM_BASE_URL,
    Effect,
    Option,
)
from kt_manifest.configuration.value_types import ARGUMENTS, Unfit, Value
from kt_manifest.launch import inheritance

OPTIONS = options.OPTIONS
LONGEST_BYTES = 128 * 1024 - 1
"""What Linux lets one argument or variable carry, its NUL apart: execve(2), MAX_ARG_STRLEN."""
markdown = settings_document.markdown


class UnknownKey(Exception):
    """There is no setting of this name."""

    exit_code = exit_codes.USAGE

    def __init__(self, key: str) -> None:
        self.key = key
        self.got = words.shown(key)
        self.suggestion = nearest.nearest(key, BY_KEY)
        self.wanted = "a key of docs/configuration.md, or agent.NAME for a variable of the agent"
        self.do = f"did you mean {self.suggestion}?" if self.suggestion else "no close match"
        super().__init__(f"unknown config key: got {self.got}, wanted {self.wanted}; {self.do}")


class ReservedKey(Exception):
    """The engine sets this key itself."""

    exit_code = exit_codes.USAGE

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

    exit_code = exit_codes.UNSUPPORTED

    def __init__(self, key: str) -> None:
        self.key = key
        self.got = key
        self.wanted = "a key that this version acts on"
        self.do = "leave it unset; an accepted limit that stops nothing would be worse than none"
        super().__init__(f"{key} is not enforced yet: got {key}, wanted {self.wanted}; {self.do}")


class InvalidValue(Exception):
    """The value is not of the key's type."""

    exit_code = exit_codes.USAGE

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
    if option is not None and option.type.parse_item is None:
        raise InvalidValue(key, got="an array", wanted=option.type.wanted)
    for item in value:
        _refuse_unusable(key, item)
        if option is not None and option.type.parse_item is not None:
            _parse_item(option, option.type.parse_item, item)
            _refuse_slips(key, item, whole=False)
    if option is None:
        check(key, "")  # a variable's value is text too
        raise InvalidValue(key, got="an array", wanted="text")
    return value


def shown(key: str, value: Value) -> Value:
    """Return what may be shown of a setting: references, keys and tokens are masked."""
    if key in (BASE_URL, ORIGIN):
        return secrets.mask_address(value)
    return clear_keys.shown(key, value) if clear_keys.is_named(key) else secrets.mask(value)


def takes_effect(key: str) -> str:
    """Return when a change of a setting takes effect, in the words of `Effect`."""
    return str(BY_KEY[key].effect if key in BY_KEY else Effect.NEXT_START)


def is_unvalidated(key: str) -> bool:
    """Tell whether a key is passed through to the agent as it is."""
    return key.startswith(PASS_THROUGH)


def check_resolved(resolved: secrets.Resolved) -> dict[str, Value]:
    """Return settings whose references have been resolved, once what they stand for is of the right type too.

    Raises:
        InvalidValue: it is not; the value is not told.
    """
    values = dict(resolved.values)
    for key in resolved.secret_keys & set(BY_KEY):
        option = BY_KEY[key]
        value = values[key]
        try:
            if isinstance(value, str):
                values[key] = option.type.parse(value)
        except Unfit:
            raise InvalidValue(
                key, got="something else behind its secret", wanted=option.type.wanted
            ) from None
    return values


def _check_pass_through(key: str, text: str) -> Value:
    name = key.removeprefix(PASS_THROUGH)
    fault = words.fault_in_environment_name(name)
    if fault is None and not all(name.split(".")):
        fault = "an empty segment between dots"
    if fault:
        raise InvalidValue(key, got=fault, wanted="agent.NAME, where NAME can name an environment variable")
    if inheritance.is_ours(name):
        got = f"{words.shown(name)}, which is the engine's own"
        raise InvalidValue(key, got=got, wanted="agent.NAME, where NAME does not begin with KT_")
    _refuse_unusable(key, text)
    _refuse_slips(key, text)
    return text


def _check_text(option: Option, text: str) -> Value:
    _refuse_unusable(option.key, text)
    if option.type.takes_reference or option.type is ARGUMENTS:
        _refuse_slips(option.key, text)
    if secrets.refers(text):
        if option.type.takes_reference:
            return text
        # Arguments are taken apart before they are resolved: a secret with a space in it stays one argument.
        if option.type is not ARGUMENTS or secrets.is_reference(text):
            raise InvalidValue(option.key, got="a secret reference", wanted=option.type.wanted)
    try:
        return option.type.parse(text)
    except Unfit as unfit:
        raise InvalidValue(option.key, got=str(unfit), wanted=option.type.wanted) from unfit


def _parse_item(option: Option, parse: Callable[[str], Value], item: str) -> None:
    try:
        parse(item)
    except Unfit as unfit:
        raise InvalidValue(option.key, got=str(unfit), wanted=option.type.wanted) from unfit


def _refuse_slips(key: str, text: str, *, whole: bool = True) -> None:
    # The provider's key goes to the gateway as it is: nothing looks for ${key} in it.
    to_agent = key != UPSTREAM_API_KEY
    wrong = slips.fault(text, whole=whole, settings=to_agent, shown=not clear_keys.is_named(key))
    if wrong is not None:
        raise InvalidValue(key, got=wrong, wanted=slips.WANTED)


def _refuse_unusable(key: str, text: str) -> None:
    if fault := words.fault_in_value(text):
        raise InvalidValue(key, got=fault, wanted="text")
    if len(text) > LONGEST_BYTES or len(text.encode()) > LONGEST_BYTES:
        wanted = f"at most {LONGEST_BYTES} bytes, which is what one argument or variable can carry"
        raise InvalidValue(key, got=f"a value of {len(text.encode())} bytes", wanted=wanted)
    if secrets.MASK in text or (text == clear_keys.MASK and clear_keys.is_named(key)):
        raise InvalidValue(
            key, got="the mask that is shown instead of a secret", wanted="secret:NAME or a value"
        )
