"""Slips in what people type: texts that look like a reference, and are none that anything can ever stand for. Pure.

Passed on they would reach the agent as they are, or fail a start much later.
"""

import re

from kt_manifest import words
from kt_manifest.configuration import secret_syntax
from kt_manifest.launch import references

_OPENED = re.compile(r"\$\$\{|\$\{")
_SECRET = re.compile(r"secret:([^{}]*)(\}?)")
_KEY = re.compile(r"([^{}\n]{0,200})\}")
WANTED = "secret:NAME, ${secret:NAME}, ${key} of a setting, or $${ for a ${ itself"


def fault(text: str, *, whole: bool = True, settings: bool = True, shown: bool = True) -> str | None:
    """Say what is wrong with the references in a text; None where nothing is.

    Args:
        whole: whether `secret:NAME` may stand for all of it; an item of a list has them inside alone.
        settings: whether `${key}` is looked for in it at all.
        shown: whether parts of the text may be quoted; not those of a key.
    """
    if whole and text.startswith(secret_syntax.PREFIX):
        return _fault_in_name(text.removeprefix(secret_syntax.PREFIX), shown=shown)
    for opened in _OPENED.finditer(text):
        if opened[0] == "$${":
            continue
        if secret := _SECRET.match(text, opened.end()):
            found = _fault_in_name(secret[1], shown=shown) if secret[2] else _unclosed(opened, "${secret:")
        elif settings:
            found = _fault_in_key(_KEY.match(text, opened.end()), opened, shown=shown)
        else:
            found = None
        if found is not None:
            return found
    return None


def _fault_in_name(name: str, *, shown: bool) -> str | None:
    if not name:
        return "a secret: without a name"
    wrong = secret_syntax.fault_in_name(name)
    return wrong and f"a reference to the secret {words.shown(name) if shown else '(not shown)'}, {wrong}"


def _fault_in_key(key: "re.Match[str] | None", opened: "re.Match[str]", *, shown: bool) -> str | None:
    if key is None:
        return _unclosed(opened, "${")
    wrong = references.fault_in_key(key[1])
    return wrong and (
        f"${{...}} with {wrong}" if shown else "${...} with a name (not shown), which is no setting"
    )


def _unclosed(opened: "re.Match[str]", what: str) -> str:
    return f"a {what} at character {opened.start()} that no }} closes"
