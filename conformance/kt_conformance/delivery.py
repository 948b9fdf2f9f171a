"""Where the values of settings arrived: in the agent's process and in its Agent Home, looked at from outside."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kt_conformance import processes
from kt_manifest.contract.snapshot import EnvTarget, FileTarget, FlagTarget, Rule, Shape
from kt_manifest.launch.native import json_file, toml_file
from kt_manifest.launch.native.unreadable import Unreadable

LONGEST_SHOWN_CHARS = 120
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+[^\s\"'\\]*")


def rules_for(mapping: Sequence[Rule], key: str) -> list[Rule]:
    """Return the rules that deliver a setting: its own, and those whose template refers to it."""
    reference = f"${{{key}}}"
    return [rule for rule in mapping if rule.key == key or reference in (rule.shape.template or "")]


def arrived(rule: Rule, *, pid: int, home: Path) -> str | None:
    """Return what stands at a rule's target, None where nothing does. A template's target is returned as a whole."""
    match rule.target:
        case EnvTarget(name):
            return processes.environment(pid).get(name)
        case FlagTarget(flag):
            return _behind(flag, processes.arguments(pid))
        case FileTarget(path, key):
            return _in_file(home / path, key, rule.shape.format)


def holds(rule: Rule, value: str, *, pid: int, home: Path) -> bool:
    """Return whether a value is at a rule's target: as it is, or, in a form of its own, within what stands there."""
    got = arrived(rule, pid=pid, home=home)
    if got is None:
        return False
    return got == value if rule.shape == Shape() else value in got


def shown(rule: Rule, *, pid: int, home: Path) -> str:
    """Return what stands at a rule's target as a reason may tell it: a form of its own may hold more than the value."""
    got = arrived(rule, pid=pid, home=home)
    return "something else" if got is not None and rule.shape != Shape() else repr(got)[:LONGEST_SHOWN_CHARS]


def address(rule: Rule, *, pid: int, home: Path) -> str | None:
    """Return the listener's address at a rule's target, None where there is none."""
    found = _ADDRESS.search(arrived(rule, pid=pid, home=home) or "")
    return found.group() if found else None


def _behind(flag: str, words: list[str]) -> str | None:
    places = [number for number, word in enumerate(words[:-1]) if word == flag]
    return words[places[-1] + 1] if places else None


def _in_file(path: Path, key: str, form: str) -> str | None:
    """Return the value of a key in TOML and JSON; for other forms, and without a key, the whole text."""
    try:
        text = path.read_text("utf-8")
        if not key or form not in ("toml", "json"):
            return text
        value: Any = toml_file.read(text) if form == "toml" else json_file.read(text)
        for part in key.split("."):
            value = value[part]
    except (OSError, ValueError, KeyError, TypeError, Unreadable):
        return None
    return value if isinstance(value, str) else json.dumps(value)
