"""The types that a setting can have, each a function from typed text to a value, or the reason why not.

A value is text or a list of texts; numbers stay text, in the one spelling that is accepted, since all of them end up
in an environment, on a command line or in front of exact decimal arithmetic.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import SplitResult, urlsplit

from kt_manifest import words
from kt_manifest.launch import inheritance

Value = str | list[str]

_QUOTES = frozenset("'\"")
_MAX_U64 = 2**64 - 1
_MAX_I64 = 2**63
_MAX_MICROS = (
    2**63 - 1
)  # what the contract's own readers hold a dollar amount in: a signed 64-bit count of micros
_MAX_DECIMALS = 6
_HOST_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")
_URL_REFUSED = frozenset(' \\"<>^`{}|')  # RFC 3986 section 2: none of these is in a URI


class Unfit(Exception):
    """The text is no value of the type; the argument says what it is instead."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type: its name in tables, what a message asks for, its parser, whether `secret:NAME` may stand for it.

    `parse_item` judges one member of an array that somebody wrote into the file; None where an array is no value.
    `choices` are all its values, where they can be counted.
    """

    name: str
    wanted: str
    parse: Callable[[str], Value]
    takes_reference: bool = False
    parse_item: Callable[[str], Value] | None = None
    choices: tuple[str, ...] = ()


def _text(text: str) -> Value:
    return text


def _count(text: str) -> Value:
    if not _is_digits(text):
        raise Unfit(words.shown(text))
    if len(text.lstrip("0")) > 20 or int(text) > _MAX_U64:
        raise Unfit(f"{words.shown(text)}, which is beyond 64 bits")
    return str(int(text))


def _dollars(text: str) -> Value:
    whole, dot, decimals = text.partition(".")
    digits = whole + decimals
    if not _is_digits(digits) or (dot and not (whole or decimals)):
        raise Unfit(words.shown(text))
    if len(decimals) > _MAX_DECIMALS:
        raise Unfit(f"{words.shown(text)}, which has more than {_MAX_DECIMALS} decimals")
    if (
        len(digits.lstrip("0")) > 19
        or int(whole.lstrip("0") + decimals.ljust(_MAX_DECIMALS, "0")) > _MAX_MICROS
    ):
        raise Unfit(f"{words.shown(text)}, which is too large")
    return text


def _word_of(name: str, *choices: str) -> ValueType:
    def parse(text: str) -> Value:
        if text not in choices:
            raise Unfit(words.shown(text))
        return text

    wanted = f"{', '.join(choices[:-1])} or {choices[-1]}"
    return ValueType(name, wanted, parse, choices=choices)


def _arguments(text: str) -> Value:
    if not set(text) & _QUOTES:
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:
        raise Unfit("a text (not shown) with a quote that is not closed") from None


def as_typed(items: Sequence[str]) -> str:
    """Return one text that `ARGUMENTS` takes apart into these again."""
    plain = all(item and not set(item) & _QUOTES and item.split() == [item] for item in items)
    return " ".join(items) if plain else shlex.join(items)


def _variables(text: str) -> Value:
    for pattern in text.split():
        _variable(pattern)
    return text.split()


def _variable(text: str) -> Value:
    if fault := inheritance.fault(text):
        raise Unfit(fault)
    return text


def _command(text: str) -> Value:
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise Unfit(f"{words.shown(text)}: {error}") from error
    if not parts:
        raise Unfit("nothing")
    return text


def _number(*, lowest: Decimal, highest: Decimal, decimals: int) -> Callable[[str], Value]:
    def parse(text: str) -> Value:
        whole, dot, fraction = text.partition(".")
        if not _is_digits(whole) or (dot and not _is_digits(fraction)) or len(text) > 24:
            raise Unfit(words.shown(text))
        if len(fraction) > decimals:
            raise Unfit(f"{words.shown(text)}, which has more than {decimals} decimals")
        if not lowest <= Decimal(text) <= highest:
            raise Unfit(words.shown(text))
        return text

    return parse


def _bytes(text: str) -> Value:
    digits, unit = text.rstrip("KMGT"), text[len(text.rstrip("KMGT")) :]
    if not _is_digits(digits) or len(unit) > 1 or len(digits) > 15:
        raise Unfit(words.shown(text))
    if not 0 < bytes_in(text) < _MAX_I64:
        raise Unfit(words.shown(text))
    return text


def bytes_in(text: str) -> int:
    """Return a size such as `512M` in bytes; the units are powers of 1024."""
    power = " KMGT".index(text[-1]) if text[-1] in "KMGT" else 0
    return int(text.rstrip("KMGT")) << 10 * power


def _credential(text: str) -> Value:
    # It becomes an HTTP field value (RFC 9110 section 5.5); never shown, whatever is wrong with it.
    if not text:
        raise Unfit("nothing")
    if not all("!" <= char <= "~" for char in text):
        raise Unfit("a text (not shown) with a space, a control character or a character outside ASCII")
    return text


def _url(text: str) -> Value:
    if any(not "!" <= char <= "~" or char in _URL_REFUSED for char in text):
        # Looked at before parsing: urlsplit drops tabs and newlines silently (WHATWG URL, "URL parsing").
        raise Unfit("a URL (not shown) with a space, a control character or another that no URL may contain")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise Unfit(f"{_shown_url(text)}: {error}") from error
    if fault := _fault_in_url(text, parts, port):
        raise Unfit(f"{_shown_url(text)}, {fault}")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def _fault_in_url(text: str, parts: SplitResult, port: int | None) -> str | None:
    host = parts.hostname or ""
    checks = (
        (parts.scheme not in ("http", "https"), "without http:// or https://"),
        ("@" in parts.netloc, "with a user or password: use metering.upstream_api_key"),
        (not host, "without a host"),
        (port == 0 or parts.netloc.endswith(":"), "with an unusable port"),
        ("?" in text or "#" in text, "with a query or fragment"),
        (":" not in host and not set(host) <= _HOST_CHARS, "with a host that is no name or address"),
        (any(part in (".", "..") for part in parts.path.split("/")), "with a '.' or '..' in its path"),
    )
    return next((fault for failed, fault in checks if failed), None)


def _shown_url(text: str) -> str:
    # What stands before an @ may be a password, and what follows a ? a key.
    visible = text.split("?")[0].split("#")[0]
    head, at, tail = visible.rpartition("@")
    return words.shown(f"{head.partition('://')[0]}://****@{tail}" if at else visible)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


TEXT = ValueType("string", "text", _text, takes_reference=True)
COUNT = ValueType("count", "a whole number from 0 to 2^64-1, digits only", _count)
DOLLARS = ValueType("dollars", "dollars such as 2.50: no sign, no exponent, at most 6 decimals", _dollars)
BREACH_ACTION = _word_of("word", "pause", "stop", "warn")
LISTENER_AUTH = _word_of("word", "token", "none")
RESTART_POLICY = _word_of("word", "never", "on-failure", "always")
SWITCH = _word_of("switch", "true", "false")
SECONDS = ValueType(
    "seconds",
    "seconds from 0 to 31536000, at most 3 decimals",
    _number(lowest=Decimal(0), highest=Decimal(31_536_000), decimals=3),
)
CORES = ValueType(
    "cores",
    "cores from 0.01 to 4096, at most 2 decimals",
    _number(lowest=Decimal("0.01"), highest=Decimal(4096), decimals=2),
)
PROCESSES = ValueType(
    "count",
    "a whole number from 1 to 4194304",
    _number(lowest=Decimal(1), highest=Decimal(4_194_304), decimals=0),
)
"""The highest process id that Linux gives: proc_sys_kernel(5), pid_max."""
DESCRIPTORS = ValueType(
    "descriptors",
    "a whole number from 1 to 1073741824",
    _number(lowest=Decimal(1), highest=Decimal(2**30), decimals=0),
)
"""Linux takes at most fs.nr_open, 2^20 unless raised, up to about 2^30 (proc_sys_fs(5)): which, a start finds out."""
FAILURES = ValueType(
    "failures", "a whole number from 1 to 1000", _number(lowest=Decimal(1), highest=Decimal(1000), decimals=0)
)
BYTES = ValueType("size", "a number of bytes, or of K, M, G or T of 1024 each, such as 512M", _bytes)
COMMAND = ValueType(
    "command", "a command line, split as a POSIX shell splits words, run without a shell", _command
)
ARGUMENTS = ValueType(
    "list",
    "arguments, separated by spaces; where there is a quote, split as a POSIX shell splits words",
    _arguments,
    parse_item=_text,
)
VARIABLES = ValueType(
    "names",
    "names of variables, beginnings that end in *, or @default, separated by spaces",
    _variables,
    parse_item=_variable,
)
CREDENTIAL = ValueType(
    "secret", "secret:NAME, or a key of visible ASCII characters", _credential, takes_reference=True
)
URL = ValueType(
    "URL",
    "an absolute http or https URL with a host and without user, query or fragment, such as https://api.openai.com/v1",
    _url,
    takes_reference=True,
)
