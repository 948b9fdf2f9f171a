"""Values that live elsewhere: `secret:NAME` stands for the caller's variable NAME, or its entry in `secrets.toml`.

A clear value is returned and never kept, logged, shown or named in an error. Resolved at each start, so a rotated
secret needs nothing but a restart.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kt_manifest import toml_text, words
from kt_manifest.configuration.value_types import Value

PREFIX = "secret:"
MASK = "secret:****"


class SecretUnresolved(Exception):
    """A secret that is referred to is found nowhere; its name and what was tried are told, never a value."""

    exit_code = 1

    def __init__(self, name: str, tried: tuple[str, ...]) -> None:
        self.name = name
        self.tried = tried
        self.got = "; ".join(tried)
        self.wanted = f"a value for {PREFIX}{words.shown(name)[1:-1]}"
        self.do = 'set the variable for this command, or put NAME = "..." into secrets.toml with mode 0600'
        super().__init__(f"unresolved secret: wanted {self.wanted}, got {self.got}; {self.do}")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings in clear text, and which of their keys were references; the values do not show in a repr."""

    values: dict[str, Value] = field(repr=False)
    secret_keys: frozenset[str]


def is_reference(value: object) -> bool:
    """Tell whether a value is `secret:NAME` as a whole, with a name."""
    return isinstance(value, str) and value.startswith(PREFIX) and len(value) > len(PREFIX)


def names(values: Iterable[Value]) -> frozenset[str]:
    """Return the names that references among these values refer to."""
    return frozenset(str(value).removeprefix(PREFIX) for value in values if is_reference(value))


def mask(value: Value) -> Value:
    """Return what may be shown of a value: a reference without its name, anything else as it is."""
    return MASK if is_reference(value) else value


def resolve(value: str, *, environment: Mapping[str, str], secrets_file: Path) -> str:
    """Return the clear text of a reference, or the value itself when it is none.

    Args:
        environment: the variables of whoever asked for the start; an empty one counts as unset.
        secrets_file: looked at second. Refused when group or others have any permission, or when it belongs to
            another user. Entries that are not text, or empty, count as absent.

    Raises:
        SecretUnresolved: neither has it.
    """
    if not is_reference(value):
        return value
    name = value.removeprefix(PREFIX)
    tried: list[str] = []
    for source in (_from_environment(name, environment), _from_file(name, secrets_file)):
        if isinstance(source, _Found):
            return source.text
        tried.append(source)
    raise SecretUnresolved(name, tuple(tried))


def resolve_all(
    settings: Mapping[str, Value], *, environment: Mapping[str, str], secrets_file: Path
) -> Resolved:
    """Return all settings with their references resolved.

    Raises:
        SecretUnresolved: the first that is found nowhere.
    """
    values = {
        key: resolve(value, environment=environment, secrets_file=secrets_file)
        if isinstance(value, str)
        else value
        for key, value in settings.items()
    }
    return Resolved(values, frozenset(key for key, value in settings.items() if is_reference(value)))


@dataclass(frozen=True, slots=True)
class _Found:
    text: str = field(repr=False)


def _from_environment(name: str, environment: Mapping[str, str]) -> _Found | str:
    value = environment.get(name, "")
    return (
        _usable(value, "the caller's environment variable")
        or "the caller's environment variable is unset or empty"
    )


def _from_file(name: str, path: Path) -> _Found | str:
    try:
        with toml_text.opened(path) as descriptor:
            if fault := _fault_in_owner(os.fstat(descriptor)):
                return f"{path.name} is not used: {fault}"
            document = toml_text.parse(toml_text.decode(toml_text.read(descriptor)))
    except FileNotFoundError:
        return f"there is no {path.name}"
    except toml_text.NotToml as error:
        return f"{path.name} is not valid TOML (line {error.line})"  # the reason could quote what is in that line
    except (OSError, ValueError) as error:
        return f"{path.name} cannot be read: {getattr(error, 'strerror', None) or error}"
    value = document.get(name)
    if not isinstance(value, str) or not value:
        return f"{path.name} has no text for it"
    return _usable(value, f"the entry in {path.name}") or f"{path.name} has no text for it"


def _usable(text: str, where: str) -> _Found | str | None:
    if not text:
        return None
    fault = words.fault_in_value(text)
    return f"{where} holds {fault}" if fault else _Found(text)


def _fault_in_owner(status: os.stat_result) -> str | None:
    if not hasattr(os, "geteuid"):
        return None  # Windows: neither owners nor modes of this sort
    # A symbolic link is followed; what counts is whose file it leads to, and that is the open descriptor's.
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return f"its mode {stat.S_IMODE(status.st_mode):04o} lets others in (chmod 600)"
    return None
