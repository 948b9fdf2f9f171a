"""Where the values of settings arrived: in the agent's process and in its Agent Home, looked at from outside."""

import tomllib
from pathlib import Path
from typing import Any

from kt_conformance import processes
from kt_manifest.contract.snapshot import EnvTarget, FileTarget, FlagTarget, Rule


def arrived(rule: Rule, *, pid: int, home: Path) -> str | None:
    """Return what stands at a rule's target, None where nothing does."""
    match rule.target:
        case EnvTarget(name):
            return processes.environment(pid).get(name)
        case FlagTarget(flag):
            return _behind(flag, processes.arguments(pid))
        case FileTarget(path, key):
            return _in_file(home / path, key)


def described(rule: Rule) -> str:
    """Return a rule's target for a reason."""
    match rule.target:
        case EnvTarget(name):
            return f"the variable {name}"
        case FlagTarget(flag):
            return f"the flag {flag}"
        case FileTarget(path, key):
            return f"{key} in {path}"


def _behind(flag: str, words: list[str]) -> str | None:
    places = [number for number, word in enumerate(words[:-1]) if word == flag]
    return words[places[-1] + 1] if places else None


def _in_file(path: Path, key: str) -> str | None:
    try:
        value: Any = tomllib.loads(path.read_text("utf-8"))
        for part in key.split("."):
            value = value[part]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(value)
