"""The adapters that come with kt: data, beside the rooms in a checkout and inside this room in an installed wheel."""

from dataclasses import dataclass
from pathlib import Path

from kt_manifest import exit_codes, nearest, words
from kt_manifest.contract import manifest
from kt_manifest.contract.snapshot import Adapter

_ROOM = Path(__file__).resolve().parents[1]


class AdapterUnknown(Exception):
    """No adapter of this kind comes with kt."""

    exit_code = exit_codes.USAGE

    def __init__(self, got: str, known: tuple[str, ...]) -> None:
        self.got = got
        self.wanted = f"one of the shipped adapters {', '.join(known)}"
        self.do = f"{nearest.suggestion(got, known)}; a file of your own is named by its path"
        super().__init__(f"unknown adapter: got {words.shown(got)}, wanted {self.wanted}; {self.do}")


class AdaptersMissing(Exception):
    """This installation of kt has lost the folder of its adapters."""

    exit_code = exit_codes.FAILED

    def __init__(self, looked: tuple[Path, ...]) -> None:
        self.got = f"no adapters in {' or '.join(words.shown_path(place) for place in looked)}"
        self.wanted = "what comes with kt"
        self.do = "install ktmeter again"
        super().__init__(f"{self.got}, wanted {self.wanted}; {self.do}")


@dataclass(frozen=True, slots=True)
class Shipped:
    """One of them, and the folder that it lies in."""

    adapter: Adapter
    folder: Path


def places(room: Path = _ROOM) -> tuple[Path, ...]:
    """Return where the adapters may lie: in the wheel, in a checkout."""
    return (room / "adapters", room.parents[1] / "adapters")


def folder(room: Path = _ROOM) -> Path:
    """Return where they lie.

    Raises:
        AdaptersMissing.
    """
    for place in places(room):
        if any(place.glob(f"*/{manifest.FILE_NAME}")):
            return place
    raise AdaptersMissing(places(room))


def found(room: Path = _ROOM) -> tuple[Shipped, ...]:
    """Return all of them, by kind.

    Raises:
        AdaptersMissing, and what `manifest.load` raises.
    """
    files = folder(room).glob(f"*/{manifest.FILE_NAME}")
    there = [Shipped(manifest.load(file), file.parent) for file in files]
    return tuple(sorted(there, key=lambda shipped: shipped.adapter.kind))


def named(kind: str, room: Path = _ROOM) -> Shipped:
    """Return the one of this kind.

    Raises:
        AdapterUnknown, and what `found` raises.
    """
    there = {shipped.adapter.kind: shipped for shipped in found(room)}
    if kind not in there:
        raise AdapterUnknown(kind, tuple(there))
    return there[kind]
