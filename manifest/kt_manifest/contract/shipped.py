"""The adapters that come with kt: data, beside the rooms in a checkout and inside this room in an installed wheel."""

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from kt_manifest import exit_codes, nearest, words
from kt_manifest.contract import manifest, shipped_folder
from kt_manifest.contract.snapshot import Adapter

ROOM = shipped_folder.ROOM
AdaptersMissing = shipped_folder.AdaptersMissing
places = shipped_folder.places
folder = shipped_folder.folder
_TEMPLATE = "A template:"


class AdapterUnknown(Exception):
    """No adapter of this kind comes with kt."""

    exit_code = exit_codes.USAGE

    def __init__(self, got: str, known: tuple[str, ...]) -> None:
        self.got = got
        self.wanted = f"one of the shipped adapters {', '.join(known)}"
        self.do = f"{nearest.suggestion(got, known)}; a file of your own is named by its path"
        super().__init__(f"unknown adapter: got {words.shown(got)}, wanted {self.wanted}; {self.do}")


@dataclass(frozen=True, slots=True)
class Shipped:
    """One of them, and the folder that it lies in."""

    adapter: Adapter
    folder: Path

    @property
    def introduction(self) -> tuple[str, ...]:
        """The comment at the head of its file, line by line: what it is, and what it needs before the first start."""
        return _introduction(self.folder / manifest.FILE_NAME)

    @property
    def is_template(self) -> bool:
        """Whether it is there to be copied: the program that it starts is the reader's to make."""
        return " ".join(self.introduction).startswith(_TEMPLATE)


def found(room: Path = ROOM) -> tuple[Shipped, ...]:
    """Return all of them, by kind.

    Raises:
        AdaptersMissing, and what `manifest.load` raises.
    """
    files = folder(room).glob(f"*/{manifest.FILE_NAME}")
    there = [Shipped(manifest.load(file), file.parent) for file in files]
    return tuple(sorted(there, key=lambda shipped: shipped.adapter.kind))


def remedy(adapter: Adapter, room: Path = ROOM) -> str | None:
    """Return what to do where the program of an adapter is not there; None for what is no template of ours as it is."""
    try:
        template = Shipped(adapter, folder(room) / adapter.kind)
        if not template.is_template or manifest.load(template.folder).start != adapter.start:
            return None
    except (
        AdaptersMissing,
        manifest.ManifestNotFound,
        manifest.ManifestUnreadable,
        manifest.ManifestInvalid,
    ):
        return None
    return (
        f"the adapter {adapter.kind} that comes with kt is a template: copy its folder, name your own program in it, "
        f"and register that (kt adapter show {adapter.kind})"
    )


def _introduction(file: Path) -> tuple[str, ...]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    return tuple(line.removeprefix("#").removeprefix(" ") for line in takewhile(_is_comment, lines))


def _is_comment(line: str) -> bool:
    return line.startswith("#")


def named(kind: str, room: Path = ROOM) -> Shipped:
    """Return the one of this kind.

    Raises:
        AdapterUnknown, and what `found` raises.
    """
    there = {shipped.adapter.kind: shipped for shipped in found(room)}
    if kind not in there:
        raise AdapterUnknown(kind, tuple(there))
    return there[kind]
