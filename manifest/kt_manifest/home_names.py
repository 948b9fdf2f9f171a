"""The names in an Agent Home that are kt's own, in one table: no adapter puts a file or a folder at or below them."""

CONFIG = "config.toml"
EFFECTIVE = "effective-config.json"
MEMORY = "memory"
MERGED = ".kt.merged.json"
TEMPORARY = ".kt.new"

TABLE: dict[str, str] = {
    CONFIG: "the operator's own layer of settings",
    EFFECTIVE: "the settings that the last start began with",
    MEMORY: "the folder of attached memory",
    MERGED: "what was put into files of the agent's own, and the way back",
    TEMPORARY: "what an atomic replacement begins with, in whatever folder",
}
"""Each name, and what is there. All but the last stand directly in the Agent Home."""
EVERYWHERE = frozenset({TEMPORARY})
"""Which of them may stand in a folder below the Agent Home as well."""


def ours_among(segments: tuple[str, ...]) -> str | None:
    """Return the name of ours that a path, relative to the Agent Home, is or lies below; None where there is none.

    Compared without case, since macOS file systems do not tell config.toml from Config.TOML.
    """
    for depth, segment in enumerate(segments):
        if segment.casefold() in (EVERYWHERE if depth else TABLE):
            return segment
    return None


def kind_of(name: str) -> str:
    """Return what stands under a name of ours: a file, or the one folder."""
    return "folder" if name.casefold() == MEMORY else "file"
