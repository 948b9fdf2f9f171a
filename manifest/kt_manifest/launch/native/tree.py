"""What a configuration file says, without its format: tables in tables, and values at paths of names. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

Path = tuple[str, ...]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()
"""What is at a path where nothing is; None is a value in some formats."""


class Occupied(Exception):
    """A value cannot be put at a path; `path` is where the other thing stands, `got` what it is, never its content."""

    def __init__(self, path: Path, got: str) -> None:
        self.path = path
        self.got = got
        super().__init__(f"{'.'.join(path)} is {got}")


def find(tree: Any, path: Path) -> Any:
    """Return what stands at a path, MISSING where nothing does."""
    for name in path:
        if not isinstance(tree, dict) or name not in tree:
            return MISSING
        tree = tree[name]
    return tree


def refuse_occupied(tree: dict[str, Any], path: Path) -> None:
    """Raise Occupied where a value at `path` would take the place of a table, or lie below a value."""
    for length in range(1, len(path)):
        above = find(tree, path[:length])
        if above is MISSING:
            return
        if not isinstance(above, dict):
            raise Occupied(path[:length], "a value")
    if isinstance(find(tree, path), dict):
        raise Occupied(path, "a table")


def put(tree: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Return a tree with a value at a path, tables above it made where they are missing; `tree` is not changed.

    Raises:
        Occupied: a table stands there, or a value above.
    """
    refuse_occupied(tree, path)
    return _put(tree, path, value)


def without(tree: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a tree without what stands at a path; tables above it stay, even empty ones."""
    if find(tree, path) is MISSING:
        return tree
    name, *rest = path
    if not rest:
        return {key: value for key, value in tree.items() if key != name}
    return {**tree, name: without(tree[name], tuple(rest))}


def of(edits: Iterable[tuple[Path, Any]]) -> dict[str, Any]:
    """Return the tree that consists of these values. Raises Occupied where one lies below another."""
    tree: dict[str, Any] = {}
    for path, value in edits:
        if find(tree, path) is not MISSING:
            raise Occupied(path, "a value")
        tree = put(tree, path, value)
    return tree


def leaves(tree: dict[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Give every value that is no table, and every empty table, with its path, in order."""
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same, types included (1, 1.0 and true are not), whatever the order of keys."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return repr(one) == repr(other)  # not-a-number is itself here, and -0.0 is not 0.0
    return bool(one == other)


def _put(tree: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    name, *rest = path
    return {**tree, name: _put(tree.get(name, {}), tuple(rest), value) if rest else value}
