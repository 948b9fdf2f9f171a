"""Where inside an Agent Home a rendered file may lie."""

import re

from kt_manifest import home_names

_DRIVE = re.compile(r"[A-Za-z]:")
_MAX_SEGMENT_BYTES = 255  # NAME_MAX on Linux and macOS (limits.h)


def segments(path: str) -> tuple[str, ...]:
    """Return the names that lead to a file; `/` and `\\` both separate, on every system."""
    return tuple(re.split(r"[/\\]", path))


def fault(path: str) -> str | None:
    """Say why a file at `path`, relative to the Agent Home, is unsafe; None when it is safe."""
    if not path:
        return "an empty path"
    if path[0] in "/\\" or _DRIVE.match(path):
        return "an absolute path"
    parts = segments(path)
    if any(part in ("", ".", "..") for part in parts):
        return "a path with an empty, '.' or '..' segment"
    return _fault_in_names(parts)


def _fault_in_names(parts: tuple[str, ...]) -> str | None:
    if any(
        ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000
        for part in parts
        for char in part
    ):
        return "a path with a control character"
    if any(len(part.encode()) > _MAX_SEGMENT_BYTES for part in parts):
        return f"a path with a name of more than {_MAX_SEGMENT_BYTES} bytes"
    if (ours := home_names.ours_among(parts)) is not None:
        return f"{ours}, which is kt's own {home_names.kind_of(ours)} in the Agent Home"
    return None
