"""Whether every placeholder that reaches an agent has something to stand for, judged on what is about to be started.

Law: of what is scanned nothing is told but the setting or place, and the variable's name; and that not where the text
is a secret, of which the name would be a part. Pure.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kt_manifest import exit_codes, words
from kt_manifest.launch import placeholders

NAMED = 8


@dataclass(frozen=True, slots=True)
class Carried:
    """One text that reaches the agent: `label` is the setting or the place that it comes from."""

    label: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unset:
    """One placeholder with nothing to stand for; `name` is None where it is not told."""

    label: str
    name: str | None
    empty: bool


class PlaceholderUnset(Exception):
    """The agent would replace a placeholder by nothing, silently, so it is not started."""

    exit_code = exit_codes.FAILED

    def __init__(self, found: Sequence[Unset], *, agent: str = "") -> None:
        self.found = tuple(found)
        told = "; ".join(map(_told, self.found[:NAMED]))
        more = len(self.found) - NAMED
        self.got = told + (f"; and {more} more" if more > 0 else "")
        self.wanted = "every variable that the agent replaces in its configuration set and not empty"
        named = next((one.name for one in self.found if one.name is not None), None)
        variable = "NAME" if named is None or words.fault_in_environment_name(named) else named
        key = f"agent.{words.shown(variable)[1:-1]}"
        self.do = f"set it (kt agent config set {agent or 'AGENT'} {key} VALUE), or correct the value"
        super().__init__(f"placeholders without a value: got {self.got}, wanted {self.wanted}; {self.do}")


def unset(
    carried: Iterable[Carried],
    env: Mapping[str, str],
    *,
    syntaxes: Sequence[str],
    secrets: Iterable[str] = (),
) -> list[Unset]:
    """Return the placeholders whose variable is not there or empty in `env`, each once for each label.

    Args:
        syntaxes: of `placeholders.SYNTAXES`; without one, nothing is scanned.
        secrets: clear values of which no part may be told.
    """
    if not syntaxes:
        return []
    hidden = sorted({form for secret in secrets if secret for form in forms(secret)}, key=len, reverse=True)
    found: dict[tuple[str, str], Unset] = {}
    for one in carried:
        missing, tellable = _missing(one.text, env, syntaxes, hidden)
        for name in missing:
            told = name if name in tellable else None
            found.setdefault((one.label, name), Unset(one.label, told, name in env))
    return list(found.values())


def _missing(
    text: str, env: Mapping[str, str], syntaxes: Sequence[str], hidden: Sequence[str]
) -> tuple[dict[str, None], set[str]]:
    """Return the names without a value, and which names are there without any part of a secret as well."""
    missing: dict[str, None] = {}
    tellable: set[str] = set()
    for reading in placeholders.readings(text):
        missing |= {
            name: None for name in placeholders.names_in_reading(reading, syntaxes) if not env.get(name)
        }
        if missing:
            tellable.update(placeholders.names_in_reading(_censored(reading, hidden), syntaxes))
    return missing, tellable


def _censored(text: str, hidden: Sequence[str]) -> str:
    for form in hidden:
        text = text.replace(form, "\0")
    return text


def forms(secret: str) -> Iterator[str]:
    """Give how a secret may be written: as it is, in JSON, and in JSON that stands in JSON."""
    yield secret
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]


def _told(one: Unset) -> str:
    name = (
        "a variable (not named here: part of a secret)" if one.name is None else words.shown(one.name)[1:-1]
    )
    return f"{one.label} names {name}, which is {'empty' if one.empty else 'not set'}"
