"""The files of layers as they are now, each read again only when it is another one.

Law: a file is taken for the same by its device, inode, size and times, and never while it is so young that a change
within the same tick of the clock could hide.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kt_ledger.clock import Clock
from kt_manifest.configuration import config_file
from kt_manifest.configuration.value_types import Value

YOUNG_NS = 50_000_000
"""Longer than any tick by which a kernel's file times advance: 10 ms where HZ is 100."""

Identity = tuple[int, ...] | None
_NO_FILE: Identity = (0,)


@dataclass(frozen=True, slots=True, eq=False)
class LayerFile:
    """What one reading gave: settings, or why there are none. Two readings are the same where the object is."""

    path: Path
    values: Mapping[str, Value] = field(default_factory=dict)
    error: Exception | None = None


class Kept[Content]:
    """What was made of files, while they stay the same."""

    def __init__(self, clock: Clock, make: Callable[[Path], Content]) -> None:
        self._clock = clock
        self._make = make
        self._kept: dict[Path, tuple[Identity, Content]] = {}

    def read(self, path: Path) -> Content:
        """Return what is made of the file as it is now."""
        before = _identity(path)
        kept = self._kept.get(path)
        if kept is not None and kept[0] == before and before is not None:
            return kept[1]
        content = self._make(path)
        if before is not None and before == _identity(path) and not self._is_young(before):
            self._kept[path] = (before, content)
        else:
            self._kept.pop(path, None)
        return content

    def _is_young(self, identity: tuple[int, ...]) -> bool:
        return self._clock.wall_ns() - max(identity[-2:]) < YOUNG_NS


def read_layer(path: Path) -> LayerFile:
    """Return what a layer's file holds; a file that is not there is an empty layer."""
    try:
        return LayerFile(path, config_file.read(path))
    except (config_file.MalformedLayer, config_file.LayerUnavailable) as error:
        return LayerFile(path, error=error)


def _identity(path: Path) -> Identity:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return _NO_FILE
    except (OSError, ValueError):
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
