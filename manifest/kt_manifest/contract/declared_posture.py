"""What an adapter declares of how its agent stands beside others: placeholders, isolation, updates, version.

Frozen at registration like everything else of the adapter; its JSON is additive within the snapshot's version 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Scalar = str | bool | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """`env`: variable -> folder, relative to the Agent Home, `/` between its names.

    `undocumented`: which of the variables the agent's authors do not document. `validated`: the release of the agent on
    which all of them were last seen to work, None where nobody says.
    """

    env: Mapping[str, str]
    undocumented: tuple[str, ...] = ()
    validated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSwitch:
    """One dotted `key` that gets `value` in the JSON that stands in the variable `env`."""

    env: str
    key: str
    value: Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """How the agent is kept from updating itself; `never` where it does not do that at all.

    `switch`: the same in words. `managed_layer`: whether a layer of the agent's own configuration that somebody else
    manages can turn it on again: yes, no, in words, or None where nobody says. `verified`: the release on which it was
    last tried.
    """

    never: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    config: ConfigSwitch | None = None
    switch: str | None = None
    managed_layer: bool | str | None = None
    verified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """How the installed release is asked: `command` as in `exec` and `args`, `pattern` with one group for it."""

    command: tuple[str, ...]
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Posture:
    """All of it; each part is absent where the adapter does not declare it. `substitution`: the syntaxes."""

    substitution: tuple[str, ...] = ()
    isolation: Isolation | None = None
    updates: Updates | None = None
    version: Version | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the parts that are declared."""
        parts: dict[str, Any] = {"substitution": list(self.substitution)} if self.substitution else {}
        if self.isolation is not None:
            parts["isolation"] = {
                "env": dict(self.isolation.env),
                "undocumented": list(self.isolation.undocumented),
                "validated": self.isolation.validated,
            }
        if self.updates is not None:
            parts["updates"] = _plain_updates(self.updates)
        if self.version is not None:
            parts["version"] = {"command": list(self.version.command), "pattern": self.version.pattern}
        return parts

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> "Posture":
        """Read what `to_json` gave. Raises TypeError, KeyError, ValueError, AttributeError: it is damaged."""
        isolation, updates, version = (facts.get(name) for name in ("isolation", "updates", "version"))
        return cls(
            substitution=_texts(facts.get("substitution", [])),
            isolation=None if isolation is None else _isolation(isolation),
            updates=None if updates is None else _updates(updates),
            version=None
            if version is None
            else Version(command=_texts(version["command"]), pattern=_text(version["pattern"])),
        )


NOTHING = Posture()
"""An adapter that declares none of it."""


def _plain_updates(updates: Updates) -> dict[str, Any]:
    config = updates.config
    plain_config = None if config is None else {"env": config.env, "key": config.key, "value": config.value}
    return {
        "never": updates.never,
        "env": dict(updates.env),
        "args": list(updates.args),
        "config": plain_config,
        "switch": updates.switch,
        "managed_layer": updates.managed_layer,
        "verified": updates.verified,
    }


def _isolation(facts: Mapping[str, Any]) -> Isolation:
    return Isolation(
        env=_table(facts["env"]),
        undocumented=_texts(facts.get("undocumented", [])),
        validated=_text_or_none(facts.get("validated")),
    )


def _updates(facts: Mapping[str, Any]) -> Updates:
    config, managed = facts.get("config"), facts.get("managed_layer")
    return Updates(
        never=bool(facts.get("never", False)),
        env=_table(facts.get("env", {})),
        args=_texts(facts.get("args", [])),
        config=None if config is None else _config(config),
        switch=_text_or_none(facts.get("switch")),
        managed_layer=managed if isinstance(managed, bool) else _text_or_none(managed),
        verified=_text_or_none(facts.get("verified")),
    )


def _config(facts: Mapping[str, Any]) -> ConfigSwitch:
    value = facts["value"]
    if not isinstance(value, str | bool | int):
        raise TypeError(f"got {type(value).__name__}, wanted a string, a boolean or an integer")
    return ConfigSwitch(env=_text(facts["env"]), key=_text(facts["key"]), value=value)


def _table(value: Any) -> dict[str, str]:
    return {_text(name): _text(item) for name, item in value.items()}


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"got {type(value).__name__}, wanted a list")
    return tuple(_text(item) for item in value)


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"got {type(value).__name__}, wanted a string")
    return value
