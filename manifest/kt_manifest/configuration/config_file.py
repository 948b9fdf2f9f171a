"""One layer of settings as a TOML file: read it, set one key, unset one key; comments and order survive.

A key is a path through tables (`metering.listener_auth` is `listener_auth` in `[metering]`); a quoted key with dots
means the same. A write is one atomic replacement under a lock, and is compared with what was intended before it
takes place: an edit that the editor got wrong never reaches the disk.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from typing import Any

from kt_manifest import replacing, toml_text, words
from kt_manifest.configuration.value_types import Value

Parts = tuple[str, ...]


class MalformedLayer(Exception):
    """The file is not TOML, or holds something that is no setting."""

    exit_code = 1

    def __init__(self, path: Path, *, line: int, got: str) -> None:
        self.path = path
        self.line = line
        self.got = got
        self.wanted = "TOML with text, numbers, booleans and arrays of them"
        self.do = "correct the file by hand"
        super().__init__(
            f"malformed config layer {words.shown_path(path)}, line {line}: got {got}, wanted {self.wanted}; {self.do}"
        )


class LayerUnavailable(Exception):
    """The file cannot be read or written."""

    exit_code = 1

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

    exit_code = 2

    def __init__(self, key: str, conflicting: str) -> None:
        self.key = key
        self.conflicting = conflicting
        self.got = words.shown(key)
        self.wanted = f"a key that does not clash with {words.shown(conflicting)}, which is set"
        self.do = f"unset {words.shown(conflicting)[1:-1]} first"
        super().__init__(f"conflicting config key: got {self.got}, wanted {self.wanted}; {self.do}")


def read(path: Path) -> dict[str, Value]:
    """Return every setting of the file by its dotted key, in the order of the file; nothing when there is none.

    Raises:
        MalformedLayer, LayerUnavailable.
    """
    text = _read_text(path)
    return {key: value for key, (_, value) in _leaves(path, text).items()}


def set(path: Path, key: str, value: Value, *, timeout_s: float = replacing.LOCK_TIMEOUT_S) -> None:
    """Set one key; the file is made, with mode 0600, when it is not there. Its folder must be.

    Raises:
        ShapeConflict: see there. MalformedLayer, LayerUnavailable: as `read`, or another writer holds the lock for
            more than `timeout_s`.
    """

    def edit(leaves: dict[str, tuple[Parts, Value]], document: Any) -> dict[str, Value]:
        _refuse_conflict(leaves, key)
        _place(document, leaves[key][0] if key in leaves else tuple(key.split(".")), value)
        return {name: stored for name, (_, stored) in leaves.items()} | {key: value}

    _edit(path, edit, timeout_s)


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


def _edit(
    path: Path,
    edit: Callable[[dict[str, tuple[Parts, Value]], Any], dict[str, Value]],
    timeout_s: float,
) -> None:
    # Imported late: most of those who read a layer never write one.
    import tomlkit

    with _translated(path), replacing.locked(path.parent, timeout_s=timeout_s) as folder:
        if path.is_symlink():
            raise LayerUnavailable(path, "a symbolic link")
        text = _read_text(path)
        leaves = _leaves(path, text)
        try:
            document = tomlkit.parse(text)
            wanted = edit(leaves, document)
            edited = tomlkit.dumps(document)
            correct = {key: value for key, (_, value) in _leaves(path, edited).items()} == wanted
        except (tomlkit.exceptions.TOMLKitError, MalformedLayer, KeyError, TypeError) as error:
            raise MalformedLayer(path, line=1, got="a layout that cannot be edited in place") from error
        if not correct:
            raise MalformedLayer(path, line=1, got="a layout that cannot be edited in place")
        if edited != text:
            replacing.replace_at(folder, path.name, edited.encode())


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except replacing.Locked as error:
        raise LayerUnavailable(path, str(error)) from error
    except (OSError, ValueError) as error:
        raise LayerUnavailable(path, getattr(error, "strerror", None) or str(error)) from error


def _read_text(path: Path) -> str:
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


def _leaves(path: Path, text: str) -> dict[str, tuple[Parts, Value]]:
    try:
        document = toml_text.parse(text)
    except toml_text.NotToml as error:
        raise MalformedLayer(path, line=error.line, got=error.reason) from error
    leaves: dict[str, tuple[Parts, Value]] = {}
    for parts, raw in _walk(document):
        key = ".".join(parts)
        value = _value(raw)
        if value is None or key in leaves:
            got = f"a second {key}" if key in leaves else f"{key} with a value that is no setting"
            raise MalformedLayer(path, line=_line_of(text, parts), got=got)
        leaves[key] = (parts, value)
    return leaves


def _walk(document: dict[str, Any]) -> Iterator[tuple[Parts, Any]]:
    # An explicit stack, since a dotted key may nest deeper than Python recurses.
    stack: list[tuple[Parts, Any]] = [((), document)]
    while stack:
        parts, value = stack.pop()
        if isinstance(value, dict):
            stack.extend(((*parts, name), below) for name, below in reversed(value.items()))
        else:
            yield parts, value


def _value(raw: Any) -> Value | None:
    if isinstance(raw, list):
        texts = [_scalar(item) for item in raw]
        return None if None in texts else [text for text in texts if text is not None]
    return _scalar(raw)


def _scalar(raw: Any) -> str | None:
    match raw:
        case str():
            return raw
        case bool():
            return str(raw).lower()
        case int() | float():
            return str(raw)
        case date() | time():
            return raw.isoformat()
    return None


def _line_of(text: str, parts: Parts) -> int:
    # tomllib keeps no positions, so this is the last line that assigns to the key's last name, or names it.
    name = re.escape(parts[-1])
    pattern = re.compile(rf"""(?:^|[.\s\[{{,"'])["']?{name}["']?\s*(?:=|\]\])""")
    lines = [number for number, line in enumerate(text.split("\n"), start=1) if pattern.search(line)]
    return lines[-1] if lines else 1


def _refuse_conflict(leaves: dict[str, tuple[Parts, Value]], key: str) -> None:
    parts = key.split(".")
    for length in range(1, len(parts)):
        ancestor = ".".join(parts[:length])
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
