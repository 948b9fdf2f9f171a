"""Where an agent's own cgroup may be made: `find` judges what a thin reader saw, `look` is that reader.

Law: only what is ours to divide. Where systemd manages the tree, that is a unit with `Delegate=` and what lies in it
(systemd.resource-control(5); systemd's CGROUP_DELEGATION page: one writer a subtree); elsewhere, as in a container,
whatever this user may write. Only cgroup v2 is used, of hybrid machines the v2 mount.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

DELEGATED = ("user.delegate", "trusted.delegate")
"""What systemd marks a delegated unit's folder with; the first can be read without privileges, and came with 251."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One cgroup folder, as found; `populated`: processes are in it directly; `marked`: systemd delegated it."""

    path: str
    writable: bool
    populated: bool
    is_root: bool = False
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A folder in which cgroups of agents may be made, or None and why there is none."""

    path: str | None
    why: str = ""


def find(levels: Sequence[Level], *, systemd: bool) -> Found:
    """Return the best folder among our own cgroup and those above it, own first.

    A folder without processes of its own, or the real root, can pass every controller down; any other cannot pass
    memory (cgroups(7), "no internal processes"), and is taken only where there is nothing better.
    """
    ours = _delegated(levels) if systemd else list(levels)
    if not ours:
        return Found(None, "systemd has delegated no cgroup to this engine; Delegate=yes in its unit does")
    writable = []
    for level in ours:
        if not level.writable:
            break
        writable.append(level)
    if not writable:
        return Found(None, f"{ours[0].path} cannot be written by this user")
    free = [level for level in writable if level.is_root or not level.populated]
    return Found((free or writable)[0].path)


def own_folder(self_cgroup: str, mountinfo: str) -> str | None:
    """Return the folder of our own cgroup in the v2 hierarchy, from /proc/self/cgroup and /proc/self/mountinfo.

    None without a v2 mount, or where our cgroup lies outside of what is mounted here (cgroup_namespaces(7)).
    """
    own = next((line[3:] for line in self_cgroup.splitlines() if line.startswith("0::")), None)
    if own is None or "/.." in own:
        return None
    for line in mountinfo.splitlines():
        head, separator, tail = line.partition(" - ")  # proc_pid_mountinfo(5)
        if not separator or tail.split(" ")[0] != "cgroup2":
            continue
        root, point = (_unescaped(field) for field in head.split(" ")[3:5])
        below = _below(own, root)
        if below is not None:
            return str(PurePosixPath(point) / below)
    return None


def parent_for_agents() -> Found:
    """Look, and return what was found; Linux only."""
    try:
        own = own_folder(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    except OSError as error:
        return Found(None, f"cgroups cannot be seen here ({error.strerror})")
    if own is None:
        return Found(None, "no cgroup v2 that this engine is in is mounted here")
    return find(look(own), systemd=os.path.isdir("/run/systemd/system"))  # noqa: PTH112 - sd_booted(3) does the same


def look(own: str) -> list[Level]:
    """Return our own cgroup and those above it, as far as the mount goes."""
    levels = []
    folder = Path(own)
    while (folder / "cgroup.procs").exists():
        levels.append(_level(folder))
        folder = folder.parent
    return levels


def _level(folder: Path) -> Level:
    needed = (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control")
    return Level(
        path=str(folder),
        writable=all(os.access(path, os.W_OK) for path in needed),
        populated=bool(_text(folder / "cgroup.procs").strip()),
        # The real root alone has no type, and no rule against processes of its own (cgroups(7)).
        is_root=not (folder / "cgroup.type").exists(),
        marked=any(_mark(folder, name) for name in DELEGATED),
    )


def _delegated(levels: Sequence[Level]) -> list[Level]:
    """Return the levels up to the unit that was delegated; it belongs to us, what is above it to systemd."""
    for number, level in enumerate(levels):
        if level.marked:
            return list(levels[: number + 1])
    return []


def _below(own: str, root: str) -> str | None:
    # Without a namespace of its own a container sees its whole path, and mounts only the lower part of it.
    if root == "/":
        return own.lstrip("/")
    if own == root or own.startswith(root + "/"):
        return own[len(root) :].lstrip("/")
    return None


def _unescaped(field: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field


def _mark(folder: Path, name: str) -> bool:
    try:
        return os.getxattr(folder, name) == b"1"
    except (OSError, AttributeError):
        return False


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
