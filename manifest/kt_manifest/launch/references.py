"""`${key}` inside a text: where it stands, and nothing of what it stands for. Pure.

`$${` is the text `${` itself. A name that begins with `secret:` is not a setting's.
"""

import re
from dataclasses import dataclass

from kt_manifest import nearest, words
from kt_manifest.configuration import options

_MARK = re.compile(r"\$\$\{|\$\{([^{}\n]{0,200})\}|\$\{")
_SECRET = "secret:"


@dataclass(frozen=True, slots=True)
class Reference:
    """One `${key}`."""

    key: str


class Malformed(Exception):
    """The text has a `${` that begins no reference; the argument says where, in characters from 0."""


def parts(text: str) -> list[str | Reference]:
    """Return a text cut at its references, escapes undone; joined again it is the text.

    Raises:
        Malformed: a `${` that is not closed.
    """
    found: list[str | Reference] = []
    at = 0
    for mark in _MARK.finditer(text):
        found.append(text[at : mark.start()])
        if mark[1] is not None:
            found.append(Reference(mark[1]))
        elif mark[0] == "$${" or text.startswith(_SECRET, mark.end()):
            found.append("${")
        else:
            raise Malformed(f"a ${{ at character {mark.start()} that is not closed")
        at = mark.end()
    found.append(text[at:])
    return [part for part in found if part != ""]


def are_in(text: str) -> bool:
    """Tell whether a text has anything to be replaced, an escape included."""
    return "${" in text


def keys(text: str) -> list[str]:
    """Return the keys that a text refers to, in order. Raises Malformed."""
    return [part.key for part in parts(text) if isinstance(part, Reference)]


def is_secret(key: str) -> bool:
    """Tell whether a name between the braces is a secret's, not a setting's."""
    return key.startswith(_SECRET)


def fault_in_key(key: str) -> str | None:
    """Say why nothing can ever stand for a key; None when it is a setting's, or a variable's of the agent."""
    if key in options.BY_KEY:
        return None
    name = key.removeprefix(options.PASS_THROUGH)
    if name != key and words.fault_in_environment_name(name) is None:
        return None
    close = nearest.nearest(key, options.BY_KEY)
    return f"{words.shown(key)}, which is no setting" + (f" (did you mean {close}?)" if close else "")
