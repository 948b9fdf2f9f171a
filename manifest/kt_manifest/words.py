"""Which texts the operating system can carry: environment names and values, arguments, shown names.

Every function returns what is wrong as a phrase, or None; the caller knows whose fault it is.
Source: execve(2): arguments and environment are NUL-terminated strings, an environment string is `NAME=value`.
"""

import unicodedata

SHOWN_CHARS = 80
# Unicode's bidirectional controls (UAX 9 section 2): they make a line read differently from what it says.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def fault_in_value(text: str) -> str | None:
    """Say why `text` cannot be an argument or an environment value."""
    if "\0" in text:
        return "a NUL character, which no argument or environment variable can carry"
    if not _is_encodable(text):
        return "a lone surrogate, which is no Unicode text"
    return None


def fault_in_environment_name(name: str) -> str | None:
    """Say why `name` cannot name an environment variable; dots and dashes can, `=` and control characters cannot."""
    if not name:
        return "an empty name"
    if "=" in name:
        return "a name with '='"
    if any(unicodedata.category(char) == "Cc" or char.isspace() for char in name):
        return "a name with a space or control character"
    return fault_in_value(name)


def fault_in_shown_name(name: str) -> str | None:
    """Say why `name` must not be printed on somebody's terminal."""
    if any(unicodedata.category(char) == "Cc" or char in _BIDI for char in name):
        return "a control character"
    return fault_in_value(name)


def shown_path(path: object) -> str:
    """Return a path in one printable line, whole: a shortened path could not be found."""
    return "".join(_visible(char) for char in str(path))


def shown(value: object) -> str:
    """Return a short, single-line, printable rendering of any value for an error message."""
    match value:
        case str():
            short = value if len(value) <= SHOWN_CHARS else value[: SHOWN_CHARS - 1] + "…"
            return '"' + "".join(_visible(char) for char in short) + '"'
        case bool():
            return f"{str(value).lower()} (a boolean)"
        case int():
            # A number of many digits is not converted: Python refuses that beyond 4300 of them.
            return f"{value} (an integer)" if value.bit_length() < 64 else "a huge integer"
        case float():
            return f"{value} (a float)"
        case dict():
            return "a table"
        case list():
            return "an array"
        case _:
            return f"a {type(value).__name__}"


def _visible(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
