"""The folder of attached memory: `memory` in the Agent Home, made at attaching and again at a start that misses it.

Law: a symbolic link in its place is refused, never followed; what is in it is never looked at.
"""

import os
import stat
from pathlib import Path

from kt_manifest import home_names, words
from kt_manifest.configuration import options
from kt_manifest.contract.snapshot import Adapter
from kt_supervisor.engine.problems import Refused

FILESYSTEM = "filesystem"
FOLDER = home_names.MEMORY


def folder(home: Path, kind: str | None) -> Path | None:
    """Return the folder that a start delivers as `memory.dir`; None where no folder is attached. Makes nothing.

    Raises:
        Refused: something else is in its place, or its path cannot be delivered as text.
    """
    if kind != FILESYSTEM:
        return None
    _refuse_unusable(home)
    return home / FOLDER


def ensure(home: Path) -> Path:
    """Make the folder where it is missing, 0700; whatever is there already is left as it is. Raises Refused."""
    _refuse_unusable(home)
    place = home / FOLDER
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        root = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not _make_at(root):
                return place
            # The name is part of what is promised: it must survive a power cut as the bytes below it do.
            os.fsync(root)
        finally:
            os.close(root)
    except OSError as error:
        raise _unusable(place, error.strerror or str(error)) from error
    return place


def notices(adapter: Adapter, place: Path | None) -> tuple[str, ...]:
    """Tell of a folder that no rule of the adapter delivers."""
    if place is None or adapter.maps(options.MEMORY_DIR):
        return ()
    return (f"{options.MEMORY_DIR} is mapped nowhere: the agent is not told of its memory folder {place}",)


def _make_at(root: int) -> bool:
    try:
        os.mkdir(FOLDER, 0o700, dir_fd=root)
    except FileExistsError:
        # Looked at again, below the folder that is open: it may have been swapped since it was judged.
        if not stat.S_ISDIR(os.stat(FOLDER, dir_fd=root, follow_symlinks=False).st_mode):
            raise
        return False
    return True


def _refuse_unusable(home: Path) -> None:
    place = home / FOLDER
    try:
        str(place).encode()
    except UnicodeEncodeError:
        raise _unusable(place, "a path that is not UTF-8, which no setting can carry") from None
    if (there := kind_of(place)) not in (None, "a folder"):
        raise _unusable(place, f"{there} in its place")


def kind_of(place: Path) -> str | None:
    """Say what is at a path, without following it; None where nothing is."""
    try:
        mode = place.stat(follow_symlinks=False).st_mode
    except OSError:
        return None  # not there, or not to be seen: making it will tell
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a symbolic link" if stat.S_ISLNK(mode) else "something that is no folder"


def _unusable(place: Path, got: str) -> Refused:
    return Refused(
        f"cannot use the memory folder {words.shown_path(place)}: got {got}, wanted a real folder or nothing there; "
        "move away what is in its place",
        code="memory_unusable",
    )
