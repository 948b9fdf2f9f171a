"""The rules of `[config.<key>]`: exactly one target each, no target twice, nothing unsafe."""

from collections.abc import Iterator
from typing import Any

from kt_manifest import words
from kt_manifest.contract import schema
from kt_manifest.contract.findings import Draft, Finding, section
from kt_manifest.contract.snapshot import EnvTarget, FileTarget, FlagTarget, Target
from kt_manifest.launch import native_path

TARGETS = ("env", "flag", "file")
_ONE_TARGET = "exactly one of env, flag and file"


def judge(draft: Draft) -> Iterator[Finding]:
    """Give the faults of all rules: each by itself first, in the order of the file, then the clashes."""
    yield from draft.wrong_types("config")
    rules = draft.table("config")
    alone = [finding for key, rule in rules.items() for finding in _judge_rule(key, rule)]
    yield from alone
    if not alone and not list(draft.wrong_types("config")):
        yield from _clashes(rules)


def quoted_section(misfit: schema.Misfit) -> str | None:
    """Return the section that was probably meant where TOML has split an unquoted dotted key into tables."""
    depth = misfit.loc.index("config") + 1
    path, value = [str(part) for part in misfit.loc[depth:]], misfit.value
    while isinstance(value, dict) and len(value) == 1 and not set(value) & set(TARGETS):
        name, value = next(iter(value.items()))
        path.append(str(name))
    return section((*misfit.loc[:depth], ".".join(path))) if isinstance(value, dict) else None


def _judge_rule(key: str, rule: Any) -> Iterator[Finding]:
    where = section(("config", key))
    if not key:
        yield Finding(where, "invalid_field", "an empty key", "a unified key such as model", "name the key")
    if not isinstance(rule, dict):
        return
    chosen = [target for target in TARGETS if target in rule]
    if len(chosen) != 1:
        got = "no target" if not chosen else " and ".join(chosen)
        lacks = None if chosen else ("config", key)
        yield Finding(where, "invalid_field", got, _ONE_TARGET, "keep one target in each rule", lacks=lacks)
    for target in chosen:
        yield from judge_target(where, target, rule[target])


def judge_target(where: str, target: str, value: Any) -> Iterator[Finding]:
    """Give the faults of one target by itself."""
    if target == "file":
        yield from _judge_file(where, value if isinstance(value, dict) else {"path": None, "key": None})
    elif isinstance(value, str):
        fault = words.fault_in_environment_name(value) if target == "env" else _fault_in_flag(value)
        if fault:
            wanted = "the name of a variable" if target == "env" else "a flag such as --model"
            yield Finding(where, "invalid_field", f"{target}: {fault}", wanted, f"correct {target}")


def _judge_file(where: str, value: dict[str, Any]) -> Iterator[Finding]:
    path, key = value.get("path", ""), value.get("key", "")
    if isinstance(path, str) and (fault := native_path.fault(path)):
        wanted = "a file inside the Agent Home, named by a relative path"
        yield Finding(
            where, "invalid_field", f"file.path {words.shown(path)}: {fault}", wanted, "choose another path"
        )
    if isinstance(key, str) and (fault := _fault_in_native_key(key)):
        wanted = "a dotted native key such as llm.model"
        yield Finding(
            where, "invalid_field", f"file.key {words.shown(key)}: {fault}", wanted, "correct the key"
        )


def _fault_in_flag(flag: str) -> str | None:
    return words.fault_in_value(flag) if flag else "an empty flag"


def _fault_in_native_key(key: str) -> str | None:
    if not key:
        return "an empty key"
    if not all(key.split(".")):
        return "an empty segment"
    return words.fault_in_shown_name(key)


def target_of(rule: dict[str, Any]) -> Target:
    """Return the target of a rule without faults."""
    if "env" in rule:
        return EnvTarget(rule["env"])
    if "flag" in rule:
        return FlagTarget(rule["flag"])
    return FileTarget("/".join(native_path.segments(rule["file"]["path"])), rule["file"].get("key") or "")


def _clashes(rules: dict[str, Any]) -> Iterator[Finding]:
    places = _Places()
    for key, rule in rules.items():
        if clash := places.take(target_of(rule), key):
            fault, other = clash
            where, got = section(("config", key)), f"{fault} as in {section(('config', other))}"
            yield Finding(
                where, "invalid_field", got, "a target of its own for each key", "change one of the two"
            )


class _Places:
    """The places of earlier rules: who has each; a look takes no longer for there being many."""

    def __init__(self) -> None:
        self._same: dict[Target, str] = {}
        self._paths = _Tree()
        self._keys: dict[str, _Tree] = {}

    def take(self, target: Target, key: str) -> tuple[str, str] | None:
        """Take the place of a rule; return what speaks against it, and whose place that is."""
        if (other := self._same.setdefault(target, key)) != key:
            return "the same target", other
        if not isinstance(target, FileTarget):
            return None
        if target.path in self._keys:
            other_key = self._keys[target.path].enter(tuple(target.key.split(".")), key)
            return None if other_key is None else ("a native key under a value", other_key)
        self._keys[target.path] = _Tree()
        self._keys[target.path].enter(tuple(target.key.split(".")), key)
        above = self._paths.enter(tuple(target.path.split("/")), key)
        return None if above is None else ("a file where a folder is needed", above)


class _Tree:
    """Names under names: who has a value where, and who was first below."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, ...], str] = {}
        self._below: dict[tuple[str, ...], str] = {}

    def enter(self, names: tuple[str, ...], owner: str) -> str | None:
        """Put a value; return who has one above or below."""
        above = (self._values.get(names[:count]) for count in range(1, len(names)))
        found = next((other for other in above if other is not None), self._below.get(names))
        self._values.setdefault(names, owner)
        for count in range(1, len(names)):
            self._below.setdefault(names[:count], owner)
        return found


def nests(one: str, other: str, separator: str) -> bool:
    """Tell whether one of two paths lies below the other."""
    return one.startswith(other + separator) or other.startswith(one + separator)
