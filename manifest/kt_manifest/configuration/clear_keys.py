"""Keys in the clear: settings that hold somebody's key themselves, where a reference would do. Pure; shows no value.

Which settings those are is said by their names: the provider's key, and variables of the agent that are called like one
(`inheritance.is_provider_key`).
"""

from collections.abc import Mapping

from kt_manifest.configuration import options, secret_syntax
from kt_manifest.configuration.value_types import Value
from kt_manifest.launch import inheritance, references

MASK = "****"
"""What is shown of one; `secret:****` stands for a reference alone."""


def is_named(key: str) -> bool:
    """Tell whether a setting is one that holds a key, by its name."""
    variable = key.removeprefix(options.PASS_THROUGH)
    return key in options.SENSITIVE or (variable != key and inheritance.is_provider_key(variable))


def is_clear(key: str, value: Value) -> bool:
    """Tell whether a setting holds a key in the clear: neither nothing, nor a reference, nor a text with one."""
    if not value or not is_named(key) or secret_syntax.refers(value):
        return False
    return key in options.SENSITIVE or not isinstance(value, str) or not _is_all_references(value)


def texts(settings: Mapping[str, Value]) -> set[str]:
    """Return the keys that stand in the clear in settings."""
    return {
        text
        for key, value in settings.items()
        if is_clear(key, value)
        for text in ([value] if isinstance(value, str) else value)
    }


def shown(key: str, value: Value) -> Value:
    """Return what may be shown of such a setting."""
    if is_clear(key, value):
        return MASK
    return secret_syntax.MASK if secret_syntax.refers(value) else value


def notice(key: str, value: Value, *, file: str, typed: bool) -> list[str]:
    """Say where a key in the clear stands now, and what would be better; nothing of other settings.

    Args:
        file: the file that keeps it.
        typed: whether it was an argument of a command.
    """
    if not is_clear(key, value):
        return []
    variable = key.removeprefix(options.PASS_THROUGH)
    name = variable if variable != key else "NAME"
    history = " and may stand in this shell's history" if typed else ""
    return [
        f"{key} is kept in the clear in {file}{history}; better: `kt secret set {name}`, then the value secret:{name}"
    ]


def _is_all_references(text: str) -> bool:
    try:
        parts = references.parts(text)
    except references.Malformed:
        return False
    return all(isinstance(part, references.Reference) for part in parts)
