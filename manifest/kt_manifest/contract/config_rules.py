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
    earlier: list[tuple[str, Target]] = []
    for key, rule in rules.items():
        target = target_of(rule)
        for other_key, other in earlier:
            if fault := _clash(target, other):
                where = section(("config", key))
                got = f"{fault} as in {section(('config', other_key))}"
                yield Finding(
                    where, "invalid_field", got, "a target of its own for each key", "change one of the two"
                )
        earlier.append((key, target))


def _clash(one: Target, other: Target) -> str | None:
    if one == other:
        return "the same target"
    if not (isinstance(one, FileTarget) and isinstance(other, FileTarget)):
        return None
    if one.path == other.path:
        return "a native key under a value" if nests(one.key, other.key, ".") else None
    return "a file where a folder is needed" if nests(one.path, other.path, "/") else None


def nests(one: str, other: str, separator: str) -> bool:
    """Tell whether one of two paths lies below the other."""
    return one.startswith(other + separator) or other.startswith(one + separator)
