"""One layer of settings as a TOML file: read it, set one key, unset one key, replace it whole; comments survive.

A write is one atomic replacement under a lock, and is compared with what was intended before it takes place: an edit
that the editor got wrong never reaches the disk. What a file means is `layer_text`'s.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kt_manifest import exit_codes, home_names, replacing, toml_edit, toml_text, words
from kt_manifest.configuration import layer_text, layers
from kt_manifest.configuration.layer_text import MalformedLayer as MalformedLayer
from kt_manifest.configuration.layer_text import Parts
from kt_manifest.configuration.value_types import Value

NAME = home_names.CONFIG
"""What a layer's file is called, in the Agent Home and in the state directory."""


class LayerUnavailable(Exception):
    """The file cannot be read or written."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: Path, got: str) -> None:
        self.path = path
        self.got = got
        self.wanted = "a regular file that can be read and replaced"
        self.do = "check the file, its folder and the free space"
        super().__init__(
            f"config layer {words.shown_path(path)} is not available: got {got}, wanted {self.wanted}; {self.do}"
        )


class ShapeConflict(Exception):
    """A key would stand below one that has a value, or in place of a table."""

    exit_code = exit_codes.USAGE

    def __init__(self, key: str, conflicting: str) -> None:
        self.key = key
        self.conflicting = conflicting
        self.got = words.shown(key)
        self.wanted = f"a key that does not clash with {words.shown(conflicting)}, which is set"
        self.do = f"unset {words.shown(conflicting)[1:-1]} first"
        super().__init__(f"conflicting config key: got {self.got}, wanted {self.wanted}; {self.do}")


class LayerFull(Exception):
    """The file would become larger than what is read back."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: Path, size_bytes: int) -> None:
        self.path = path
        self.got = f"{size_bytes} bytes"
        self.wanted = f"at most {toml_text.LIMIT_BYTES}"
        self.do = "unset what is not needed; nothing was changed"
        super().__init__(
            f"config layer {words.shown_path(path)} would be too large: got {self.got}, wanted {self.wanted}; {self.do}"
        )


class ChangedMeanwhile(Exception):
    """Another writer changed the file after it was read; what is there now is kept."""

    exit_code = exit_codes.WRONG_STATE

    def __init__(self, path: Path, keys: list[str]) -> None:
        self.path = path
        self.keys = keys
        named = ", ".join(words.shown(key)[1:-1] for key in keys[:8]) or "its comments or its order"
        self.got = f"another writer's change of {named}"
        self.wanted = "the file as it was read"
        self.do = "look at what is there now, and begin again; nothing was changed"
        where = words.shown_path(path)
        super().__init__(
            f"config layer {where} has changed meanwhile: got {self.got}, wanted {self.wanted}; {self.do}"
        )


def read(path: Path) -> dict[str, Value]:
    """Return every setting of the file by its dotted key, in the order of the file; nothing when there is none.

    Raises:
        MalformedLayer, LayerUnavailable.
    """
    return layer_text.read(path, text(path))


def text(path: Path) -> str:
    """Return the file's text, an empty one when there is none.

    Raises:
        MalformedLayer: it is not UTF-8. LayerUnavailable.
    """
    with _translated(path):
        try:
            with toml_text.opened(path) as descriptor:
                data = toml_text.read(descriptor)
        except FileNotFoundError:
            return ""
    try:
        return toml_text.decode(data)
    except toml_text.NotToml as error:
        raise MalformedLayer(path, line=error.line, got=error.reason) from error


def set(path: Path, key: str, value: Value, *, timeout_s: float = replacing.LOCK_TIMEOUT_S) -> Value | None:
    """Set one key, and return what was there before; None where nothing was.

    The file is made, with mode 0600, when it is not there. Its folder must be.

    Raises:
        ShapeConflict, LayerFull: see there. MalformedLayer, LayerUnavailable: as `read`, or another writer holds the
            lock for more than `timeout_s`.
    """
    before: Value | None = None

    def edit(leaves: dict[str, tuple[Parts, Value]], document: Any) -> dict[str, Value]:
        nonlocal before
        before = leaves[key][1] if key in leaves else None
        _refuse_conflict(leaves, key)
        _place(document, leaves[key][0] if key in leaves else tuple(key.split(".")), value)
        return {name: stored for name, (_, stored) in leaves.items()} | {key: value}

    _edit(path, edit, timeout_s)
    return before


def unset(path: Path, key: str, *, timeout_s: float = replacing.LOCK_TIMEOUT_S) -> bool:
    """Remove one key; tell whether it was set. Raises as `set` does.

    A table is removed with its last key, never as a whole: `unset metering` removes nothing.
    """
    if key not in read(path):
        return False
    removed = False

    def edit(leaves: dict[str, tuple[Parts, Value]], document: Any) -> dict[str, Value]:
        nonlocal removed
        removed = key in leaves  # another writer may have been quicker
        if removed:
            _remove(document, leaves[key][0])
        return {name: stored for name, (_, stored) in leaves.items() if name != key}

    _edit(path, edit, timeout_s)
    return removed


def replace(
    path: Path, wanted: str, *, was: str, timeout_s: float = replacing.LOCK_TIMEOUT_S
) -> dict[str, Value]:
    """Put a whole text in the place of the one that was read, if that is still there; return its settings.

    Raises:
        ChangedMeanwhile, LayerFull: see there. MalformedLayer, LayerUnavailable: as `set`.
    """
    data = wanted.encode()
    _check_size(path, data)
    values = layer_text.read(path, wanted)
    with _translated(path), replacing.locked(path.parent, timeout_s=timeout_s) as folder:
        _refuse_link(path)
        there = text(path)
        if there not in (was, wanted):
            raise ChangedMeanwhile(path, _differing(path, was, there))
        if there != wanted:
            replacing.replace_at(folder, path.name, data)
    return values


def _differing(path: Path, was: str, there: str) -> list[str]:
    try:
        before, after = layer_text.read(path, was), layer_text.read(path, there)
    except MalformedLayer:
        return []
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _check_size(path: Path, data: bytes) -> None:
    if len(data) > toml_text.LIMIT_BYTES:
        raise LayerFull(path, len(data))


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise LayerUnavailable(path, "a symbolic link, which a replacement would cut")


def _edit(
    path: Path,
    edit: Callable[[dict[str, tuple[Parts, Value]], Any], dict[str, Value]],
    timeout_s: float,
) -> None:
    with _translated(path), replacing.locked(path.parent, timeout_s=timeout_s) as folder:
        _refuse_link(path)
        current = text(path)
        leaves = layer_text.leaves(path, current)
        wanted: dict[str, Value] = {}
        try:
            edited = toml_edit.edited(
                current,
                lambda document: wanted.update(edit(leaves, document)),
                correct=lambda new: layer_text.read(path, new) == wanted,
            )
        except toml_edit.NoRoom as error:
            raise LayerFull(path, error.size_bytes) from None
        except (toml_edit.NotEditable, MalformedLayer):
            raise MalformedLayer(path, line=1, got="a layout that cannot be edited in place") from None
        if edited != current:
            replacing.replace_at(folder, path.name, edited.encode())


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except replacing.Locked as error:
        raise LayerUnavailable(path, str(error)) from error
    except (OSError, ValueError) as error:
        raise LayerUnavailable(path, getattr(error, "strerror", None) or str(error)) from error


def _refuse_conflict(leaves: dict[str, tuple[Parts, Value]], key: str) -> None:
    for ancestor in layers.ancestors(key):
        if ancestor in leaves:
            raise ShapeConflict(key, ancestor)
    for other in leaves:
        if other.startswith(key + "."):
            raise ShapeConflict(key, other)


def _place(document: Any, parts: Parts, value: Value) -> None:
    import tomlkit

    node = document
    for name in parts[:-1]:
        if name not in node:
            node[name] = tomlkit.table()
        node = node[name]
    node[parts[-1]] = value


def _remove(document: Any, parts: Parts) -> None:
    nodes = [document]
    for name in parts[:-1]:
        nodes.append(nodes[-1][name])
    for node, name in zip(reversed(nodes), reversed(parts), strict=True):
        del node[name]
        if node:
            return
