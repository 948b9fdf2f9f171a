"""How a value refers to a secret: `secret:NAME` as a whole, or `${secret:NAME}` anywhere inside of a text.

`$${secret:` stands for the characters `${secret:`. A value that is a reference as a whole is only that, whatever its
name looks like. Of a list, each item may contain references; an item `secret:NAME` is a text like any other, as the
contract has it. Pure; knows no secret.
"""

import re
from collections.abc import Callable, Iterable

from kt_manifest import words
from kt_manifest.configuration.value_types import Value

PREFIX = "secret:"
MASK = "secret:****"
_INSIDE = re.compile(r"\$\$\{secret:|\$\{secret:([^{}]+)\}")
_UNNAMEABLE = frozenset("{}")


def is_reference(value: object) -> bool:
    """Tell whether a value is `secret:NAME` as a whole, with a name."""
    return isinstance(value, str) and value.startswith(PREFIX) and len(value) > len(PREFIX)


def refers(value: Value) -> bool:
    """Tell whether a value is a reference or contains one."""
    return bool(names_in(value))


def names_in(value: Value) -> list[str]:
    """Return the names that a value refers to, in order; a name that it repeats is repeated."""
    if not isinstance(value, str):
        return [name for item in value for name in _inside(item)]
    return [value.removeprefix(PREFIX)] if is_reference(value) else _inside(value)


def names(values: Iterable[Value]) -> frozenset[str]:
    """Return all the names that these values refer to."""
    return frozenset(name for value in values for name in names_in(value))


def mask(value: Value) -> Value:
    """Return what may be shown of a value: references without their names, the rest as it is."""
    if not isinstance(value, str):
        return [_replaced(item, lambda _: MASK) for item in value]
    return MASK if is_reference(value) else _replaced(value, lambda _: MASK, escapes=False)


def expand[Kind: (str, Value)](value: Kind, lookup: Callable[[str], str]) -> Kind:
    """Return the value with each reference replaced by what `lookup` says of its name; an escape becomes itself.

    What was put in is not looked at again: a secret that looks like a reference is none.
    """
    if not isinstance(value, str):
        return [_replaced(item, lookup) for item in value]
    return lookup(value.removeprefix(PREFIX)) if is_reference(value) else _replaced(value, lookup)


def captured(value: Value, delivered: str) -> list[str]:
    """Return what stood for the references of a text, where the text around them is known: the reverse of `expand`."""
    if not isinstance(value, str) or not refers(value):
        return []
    if is_reference(value):
        return [delivered]
    pattern, at = "", 0
    for found in _INSIDE.finditer(value):
        pattern += re.escape(value[at : found.start()]) + ("(.+?)" if found[1] else re.escape("${secret:"))
        at = found.end()
    match = re.fullmatch(pattern + re.escape(value[at:]), delivered, re.DOTALL)
    return list(match.groups()) if match else []


def fault_in_name(name: str) -> str | None:
    """Say why `name` cannot name a secret; what can name an environment variable can, but for braces."""
    if _UNNAMEABLE & set(name):
        return "a name with '{' or '}'"
    return words.fault_in_environment_name(name)


def _inside(text: str) -> list[str]:
    return [found[1] for found in _INSIDE.finditer(text) if found[1]]


def _replaced(text: str, by: Callable[[str], str], *, escapes: bool = True) -> str:
    if PREFIX not in text:
        return text

    def one(found: re.Match[str]) -> str:
        if found[1]:
            return by(found[1])
        return "${secret:" if escapes else found[0]

    return _INSIDE.sub(one, text)
