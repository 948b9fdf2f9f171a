"""How a process that runs was started, as the kernel tells it: nothing of it is on our disk.

Asked for a keeper that takes over, for the secrets that an agent was given, and for what a next start would change.
"""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A process as it was started; its variables do not show in a repr."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str

    def __repr__(self) -> str:
        """Return no variable: they hold keys."""
        return f"Running({self.argv[0]!r})"


def look(pid: object) -> Running | None:
    """Return how a process was started (proc(5)); None where it has gone, or is not ours to see."""
    if not isinstance(pid, int):
        return None
    folder = Path(f"/proc/{pid}")
    try:
        argv = _texts((folder / "cmdline").read_bytes())
        env = dict(text.partition("=")[::2] for text in _texts((folder / "environ").read_bytes()))
        cwd = str((folder / "cwd").readlink())
    except OSError:
        return None
    return Running(argv=tuple(argv) or ("?",), env=env, cwd=cwd)


def _texts(data: bytes) -> list[str]:
    return [os.fsdecode(item) for item in data.split(b"\0")[:-1]]
