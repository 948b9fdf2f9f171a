"""A home folder of the kit's own, in which whatever an agent writes outside of its isolated folders shows.

What an agent writes by another name than `$HOME` and `$TMPDIR` (a fixed path, the home folder of the password database)
is not seen here.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from kt_client import place

TEMPORARY = "tmp"
LONGEST_TOLD = 5


class Outside:
    """A fresh home folder below `root`, `TMPDIR` in it; gone at the end. A context manager, once."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"

    def __enter__(self) -> Self:
        """Make it, empty."""
        (self.home / TEMPORARY).mkdir(mode=0o700, parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it, whatever is in it."""
        shutil.rmtree(self.home, ignore_errors=True)

    def caller(self) -> dict[str, str]:
        """Return the environment of a caller who lives here: without `XDG_*`, which would lead out."""
        kept = {name: value for name, value in place.caller().items() if not name.startswith("XDG_")}
        return {**kept, "HOME": str(self.home), "TMPDIR": str(self.home / TEMPORARY)}

    def written(self, *, allowed: Sequence[str] = ()) -> list[str]:
        """Return what is there, relative to the home, in order: files, links and empty folders.

        Args:
            allowed: paths relative to the home that are no matter, with all that is below them.
        """
        free = {Path(path) for path in allowed}
        found = []
        for folder, folders, files in self.home.walk():
            own = folder.relative_to(self.home)
            found += [own / name for name in files]
            found += [own / name for name in folders if (folder / name).is_symlink()]
            if not folders and not files and own not in (Path(), Path(TEMPORARY)):
                found.append(own)
        return sorted(path.as_posix() for path in found if not _lies_in(path, free))


def described(paths: Sequence[str]) -> str:
    """Return written paths as a reason names them: of many the first."""
    shown = [
        f"$TMPDIR/{path.removeprefix(f'{TEMPORARY}/')}"
        if path.startswith(f"{TEMPORARY}/")
        else f"$HOME/{path}"
        for path in paths[:LONGEST_TOLD]
    ]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def unused(folder: Path, home: Path, rendered: frozenset[str]) -> bool:
    """Return whether an agent wrote nothing into a folder of its Agent Home: what kt itself rendered does not count."""
    return all(path.is_dir() or path.relative_to(home).as_posix() in rendered for path in folder.rglob("*"))


def _lies_in(path: Path, places: set[Path]) -> bool:
    return any(path == place or place in path.parents for place in places)
