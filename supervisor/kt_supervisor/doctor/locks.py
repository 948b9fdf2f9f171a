"""Who holds a flock, read from the kernel's list: a look takes none, or an engine that starts would lose to it."""

from pathlib import Path

LIST = Path("/proc/locks")


def is_held(lock: Path) -> bool | None:
    """Tell whether any process holds the flock of a file; None where that is not known, or there is no such file.

    By inode alone: on btrfs and overlays the list names another device than stat(2). A stranger's lock on the same
    number elsewhere then counts as one, and a stale socket goes untold.
    """
    try:
        inode, lines = str(lock.stat().st_ino), LIST.read_text().splitlines()
    except OSError:
        return None
    # proc_locks(5): "1: FLOCK  ADVISORY  WRITE 4711 fe:00:131090 0 EOF"; "->" marks one who waits.
    held = [fields[5] for line in lines if (fields := line.split())[1:2] == ["FLOCK"] and len(fields) > 5]
    return any(place.rpartition(":")[2] == inode for place in held)
