"""The adapters that come with kt: data, beside the rooms in a checkout and inside this room in an installed wheel."""

from dataclasses import dataclass
from pathlib import Path

from kt_manifest import exit_codes, nearest, words
from kt_manifest.contract import manifest, shipped_folder
from kt_manifest.contract.snapshot import Adapter

ROOM = shipped_folder.ROOM
AdaptersMissing = shipped_folder.AdaptersMissing
places = shipped_folder.places
folder = shipped_folder.folder


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


def found(room: Path = ROOM) -> tuple[Shipped, ...]:
    """Return all of them, by kind.

    Raises:
        AdaptersMissing, and what `manifest.load` raises.
    """
    files = folder(room).glob(f"*/{manifest.FILE_NAME}")
    there = [Shipped(manifest.load(file), file.parent) for file in files]
    return tuple(sorted(there, key=lambda shipped: shipped.adapter.kind))


def named(kind: str, room: Path = ROOM) -> Shipped:
    """Return the one of this kind.

    Raises:
        AdapterUnknown, and what `found` raises.
    """
    there = {shipped.adapter.kind: shipped for shipped in found(room)}
    if kind not in there:
        raise AdapterUnknown(kind, tuple(there))
    return there[kind]
