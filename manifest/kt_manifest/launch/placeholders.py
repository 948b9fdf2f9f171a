"""How agents write "the value of this variable" in their own configuration: a closed set of syntaxes, and finding them.

An agent that finds no such variable takes an empty text, silently. So every reading of a text is looked at: as it is,
and with its backslash escapes undone, again and again, since a text may be JSON that stands in JSON.
Pure; what is found are names, never what stands around them.
"""

import re
from collections.abc import Iterable, Iterator

SYNTAXES = ("{env:VAR}", "${VAR}", "${VAR:-text}", "$VAR", "%VAR%")
"""What `[kt.substitution] syntax` may name. `${VAR:-text}` needs its variable only where the text is empty."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_PATTERNS = {
    "${VAR}": re.compile(r"\$\{(" + _NAME + r")\}"),
    "${VAR:-text}": re.compile(r"\$\{(" + _NAME + r"):?-\}"),
    "$VAR": re.compile(r"\$(" + _NAME + r")"),
    "%VAR%": re.compile(r"%(" + _NAME + r")%"),
}

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
DEEPEST = 8
"""How often escapes are undone: JSON in JSON in JSON, and then some."""


def names(text: str, syntaxes: Iterable[str]) -> list[str]:
    """Return the variables that an agent could look for in a text, each once, in the order in which they are found."""
    wanted = tuple(syntaxes)
    found = (name for reading in readings(text) for name in names_in_reading(reading, wanted))
    return list(dict.fromkeys(found))


def names_in_reading(reading: str, syntaxes: Iterable[str]) -> Iterator[str]:
    """Give the variables that are named in a text as it stands."""
    for syntax in syntaxes:
        if syntax == "{env:VAR}":
            yield from _in_braces(reading)
        else:
            yield from (match.group(1) for match in _PATTERNS[syntax].finditer(reading))


def _in_braces(reading: str) -> Iterator[str]:
    """Give what stands in `{env:…}`; by hand, since a pattern would look for the same brace again and again.

    OpenCode takes everything up to the brace for a name, so that `{env: A}` is a variable " A", which nobody has.
    """
    opening, start = "{env:", 0
    while (found := reading.find(opening, start)) >= 0:
        begins = found + len(opening)
        ends = reading.find("}", begins)
        if ends < 0:
            return
        if ends > begins:
            yield reading[begins:ends]
        start = ends + 1


def readings(text: str) -> Iterator[str]:
    """Give a text as it is, then with its escapes undone, until there are none left."""
    yield text
    for _ in range(DEEPEST):
        if "\\" not in text:
            return
        text = _ESCAPE.sub(_undone, text)
        yield text


def _undone(escape: re.Match[str]) -> str:
    number = escape[1] or escape[2] or escape[3]
    if number is not None:
        code = int(number, 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"
    return _CONTROLS.get(escape[4], escape[4])
