"""An operation that the adapter declares beside its start (stop, pause, resume), as the keeper runs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kt_manifest.contract.snapshot import Template
from kt_manifest.launch import executable

_OURS = ("KT_RUN", "KT_INSTANCE")


@dataclass(frozen=True, slots=True)
class Command:
    """`argv[0]` is absolute; `env` comes on top of the agent's own environment, and is not shown in a repr."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(repr=False)

    def to_json(self) -> dict[str, list[str] | dict[str, str]]:
        """Return it as the keeper takes it."""
        return {"argv": list(self.argv), "env": dict(self.env)}


def command(template: Template, env: Mapping[str, str], home: Path) -> Command:
    """Return what runs an operation.

    Args:
        env: the agent's final environment; the program is looked up on its PATH, as at the start, or on the one that
            the operation itself sets.
        home: the Agent Home, where the operation runs.

    Raises:
        ExecutableMissing, NotExecutable: an operation that cannot run falls through to the engine's own ladder.
    """
    # Whose tree it is is read from these two: an operation may not speak for another Run.
    added = {name: value for name, value in template.env.items() if name not in _OURS}
    program = executable.find_executable(template.exec, {**env, **added}, home)
    return Command((program, *template.args), added)
