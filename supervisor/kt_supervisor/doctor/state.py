"""The state directory: its disk, its file system, who may read it, and what dead processes left in it."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from kt_ledger.layout import StateLayout
from kt_supervisor.doctor import locks
from kt_supervisor.doctor.finding import Finding, bad, ok, warn

FLOOR_BYTES = 64 << 20
"""Below this, keepers stop reading their agents' output."""
LOW_BYTES = 1 << 30
LOW_INODES = 10_000
MOST_ENTRIES = 20_000
NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "ocfs2",
    }
    | {"gfs2", "fuse.sshfs", "fuse.glusterfs", "virtiofs"}
)
FLEETING = frozenset({"tmpfs", "ramfs", "overlay"})


def nearest(root: Path) -> Path:
    """Return the state directory, or the folder above it that is there."""
    return next(folder for folder in (root, *root.parents) if folder.is_dir())


def disk(root: Path) -> Finding:
    """Look at the space that is left."""
    facts = os.statvfs(nearest(root))
    inodes = facts.f_favail if facts.f_files else None  # btrfs and others have no fixed number
    return judge_disk(facts.f_bavail * facts.f_frsize, inodes)


def judge_disk(free_bytes: int, free_inodes: int | None) -> Finding:
    """Judge the space that is left."""
    found = f"{free_bytes / 2**30:.1f} GiB free" + (
        "" if free_inodes is None else f", {free_inodes} files can be made"
    )
    if free_bytes < FLOOR_BYTES or free_inodes == 0:
        return bad("disk", found, f"free some space: below {FLOOR_BYTES >> 20} MiB agents are frozen")
    if free_bytes < LOW_BYTES or (free_inodes is not None and free_inodes < LOW_INODES):
        return warn("disk", found, "free some space, or bound the logs: logs.cap")
    return ok("disk", found)


def filesystem(root: Path, *, mounts: Path = Path("/proc/self/mountinfo")) -> Finding:
    """Look at the kind of file system."""
    try:
        return judge_filesystem(
            kind_of(nearest(root).resolve(), mounts.read_text("utf-8", "surrogateescape"))
        )
    except OSError:
        return ok("filesystem", "its kind is not known on this system; it must be a local one")


_OCTAL = re.compile(r"\\([0-7]{3})")
"""How the kernel writes a space, a tab, a newline and a backslash."""


def kind_of(path: Path, mounts: str) -> str:
    """Return the type of the file system that holds `path` (proc_pid_mountinfo(5)): the last mount over it."""
    found, longest = "unknown", -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        point = Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[4]))
        if (path == point or point in path.parents) and len(point.parts) >= longest:
            found, longest = fields[fields.index("-") + 1], len(point.parts)
    return found


def judge_filesystem(kind: str) -> Finding:
    """Judge a type of file system."""
    if kind in NETWORK:
        return warn(
            "filesystem",
            f"{kind}, which is shared over a network",
            "move the state to a local disk: locks and SQLite's log are not safe on this one",
        )
    if kind in FLEETING:
        return warn(
            "filesystem",
            f"{kind}, which does not outlive the machine or the container",
            "use a disk, or a volume",
        )
    return ok("filesystem", kind)


def permissions(files: StateLayout) -> Finding:
    """Look at who may read the state: nobody but its owner should."""
    if not files.root.is_dir():
        return ok("permissions", f"there is no {files.root} yet")
    owner = files.root.stat().st_uid
    if owner != os.geteuid():
        return bad(
            "permissions", f"{files.root} belongs to the user with id {owner}", "use a directory of your own"
        )
    open_ones = [path for path, mode in _ours(files) if mode & 0o077]
    if open_ones:
        shown = ", ".join(str(path) for path in open_ones[:3])
        return bad(
            "permissions", f"open to others: {shown} ({len(open_ones)} in all)", f"chmod -R go= {files.root}"
        )
    return ok("permissions", "open to nobody else")


def secrets(files: StateLayout) -> Finding:
    """Look at the file of secrets."""
    try:
        facts = files.secrets.stat()
    except OSError:
        return ok("secrets", "there is no secrets.toml")
    if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        mode = stat.S_IMODE(facts.st_mode)
        found = f"secrets.toml has mode {mode:04o} and belongs to user {facts.st_uid}"
        return bad("secrets", found, f"chmod 0600 {files.secrets}: until then it is refused")
    return ok("secrets", "secrets.toml is private")


def sockets(files: StateLayout) -> Finding:
    """Look for sockets that nobody serves any more."""
    pairs = [(files.engine_socket, files.engine_lock), (files.gateway.admin, files.gateway.lock)]
    pairs += [(run.socket, run.lock) for run in map(files.run, _names(files.runs))]
    stale = [path for path, lock in pairs if path.is_socket() and locks.is_held(lock) is False]
    if stale:
        shown = ", ".join(str(path.relative_to(files.root)) for path in stale[:3])
        return warn(
            "sockets",
            f"left by processes that were killed: {shown} ({len(stale)} in all)",
            "nothing: the next process replaces its own, and those of ended Runs go with their logs",
        )
    return ok("sockets", "none that nobody serves")


def _ours(files: StateLayout) -> Iterator[tuple[Path, int]]:
    """Yield our own files with their modes, bounded; what agents keep in their homes is their own affair."""
    yield files.root, stat.S_IMODE(files.root.stat().st_mode)
    seen = 0
    for folder, below, names in os.walk(files.root):
        if folder == str(files.root) and files.homes.name in below:
            below.remove(files.homes.name)
        for name in [*names, *below]:
            seen += 1
            if seen > MOST_ENTRIES:
                return
            try:
                facts = Path(folder, name).lstat()
            except OSError:
                continue
            if not stat.S_ISLNK(facts.st_mode):
                yield Path(folder, name), stat.S_IMODE(facts.st_mode)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
