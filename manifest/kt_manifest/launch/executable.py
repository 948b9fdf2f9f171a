"""Finding the program to start, as the child itself would find it: on the PATH of its own final environment."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kt_manifest import exit_codes, words


class ExecutableMissing(Exception):
    """The program to start is not there."""

    exit_code = exit_codes.FAILED

    def __init__(self, name: str, *, looked_in: str, path_from: str = "", remedy: str | None = None) -> None:
        self.name = name
        self.got = f"no {words.shown_path(name)} {looked_in}"
        self.wanted = "an installed program"
        cure = f"correct {path_from}, which sets PATH" if path_from else "start with a PATH that leads to it"
        self.do = remedy or f"install it, or {cure}"
        super().__init__(f"executable not found: got {self.got}, wanted {self.wanted}; {self.do}")


class NotExecutable(Exception):
    """There is something of that name, but it cannot be executed."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: str, *, got: str) -> None:
        self.path = path
        self.got = got
        self.wanted = "a regular file that this user may execute"
        self.do = "chmod +x it, or name another program"
        super().__init__(
            f"cannot execute {words.shown_path(path)}: got {got}, wanted {self.wanted}; {self.do}"
        )


def find_executable(
    name: str,
    env: Mapping[str, str],
    cwd: Path,
    *,
    path_from: str = "",
    remedy: Callable[[], str | None] | None = None,
) -> str:
    """Return the absolute path of a program.

    Args:
        name: a bare name, looked up on PATH, or an absolute path.
        env: the child's final environment. Without PATH in it, the system's default search path counts.
        cwd: the child's working directory: an empty or relative entry of PATH is taken from there (POSIX.1-2017,
            "Environment Variables", PATH).
        path_from: who sets PATH, where that is not whoever starts the agent; for the message.
        remedy: says what to do where it is not there, if that is more than to install it.

    Raises:
        ExecutableMissing: nothing of that name. NotExecutable: only something that is no executable file.
    """
    path = env.get("PATH", os.defpath)
    candidates = [name] if os.path.isabs(name) else list(_on_path(name, path, cwd))  # noqa: PTH117 - text in, text out
    faults: list[tuple[str, str]] = []
    for candidate in candidates:
        fault = _fault(candidate)
        if fault is None:
            return candidate
        if fault:
            faults.append((candidate, fault))
    if faults:
        raise NotExecutable(faults[0][0], got=faults[0][1])
    if candidates == [name]:
        raise ExecutableMissing(name, looked_in="at that path", remedy=remedy and remedy())
    looked_in = f"on PATH={words.shown_path(path)}"
    raise ExecutableMissing(name, looked_in=looked_in, path_from=path_from, remedy=remedy and remedy())


def _on_path(name: str, path: str, cwd: Path) -> Iterator[str]:
    if "/" in name:  # never searched for (execvp(3)); a manifest cannot say it, a damaged snapshot could
        return
    for folder in path.split(os.pathsep):
        yield str(cwd.absolute() / folder / name)


def _fault(candidate: str) -> str | None:
    """Say why a path is no program: "" when nothing is there, None when it is one."""
    file = Path(candidate)
    try:
        if not file.exists():
            return ""
        if not file.is_file():
            return "a folder" if file.is_dir() else "no regular file"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None if os.access(file, os.X_OK) else "a file without permission to execute"
