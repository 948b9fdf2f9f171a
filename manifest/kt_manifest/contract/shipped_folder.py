"""Where the adapters that come with kt lie, and their kinds, which are the names of their folders; judges nothing."""

from pathlib import Path

from kt_manifest import exit_codes, words

FILE_NAME = "adapter.toml"
ROOM = Path(__file__).resolve().parents[1]


class AdaptersMissing(Exception):
    """This installation of kt has lost the folder of its adapters."""

    exit_code = exit_codes.FAILED

    def __init__(self, looked: tuple[Path, ...]) -> None:
        self.got = f"no adapters in {' or '.join(words.shown_path(place) for place in looked)}"
        self.wanted = "what comes with kt"
        self.do = "install ktmeter again"
        super().__init__(f"{self.got}, wanted {self.wanted}; {self.do}")


def places(room: Path = ROOM) -> tuple[Path, ...]:
    """Return where the adapters may lie: in the wheel, in a checkout."""
    return (room / "adapters", room.parents[1] / "adapters")


def folder(room: Path = ROOM) -> Path:
    """Return where they lie.

    Raises:
        AdaptersMissing.
    """
    for place in places(room):
        if any(place.glob(f"*/{FILE_NAME}")):
            return place
    raise AdaptersMissing(places(room))


def kinds(room: Path = ROOM) -> list[str]:
    """Return the kinds, sorted.

    Raises:
        AdaptersMissing.
    """
    return sorted(file.parent.name for file in folder(room).glob(f"*/{FILE_NAME}"))
