"""Which rule has which place, and where two want one: every rule is looked at once, however many there are."""

from dataclasses import dataclass, field

from kt_manifest.contract.snapshot import EnvTarget, FileTarget, Rule
from kt_manifest.launch import native_file, template
from kt_manifest.launch.native import tree
from kt_manifest.launch.native.tree import Path


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has a place: the section of the manifest, and the unified key in it."""

    section: str
    key: str


@dataclass(frozen=True, slots=True)
class Clash:
    """What is wrong between a rule and the earlier one of `owner`, as a phrase that the section completes.

    `turned` is the same as the earlier one sees it, where that is another phrase.
    """

    fault: str
    owner: Owner
    turned: str | None = None


@dataclass(slots=True)
class _Node:
    """A name on the way to values: who came here first, and who has a value exactly here."""

    first: Owner
    value: Owner | None = None
    below: "dict[str, _Node]" = field(default_factory=dict)


class Places:
    """The places that have been taken so far."""

    def __init__(self) -> None:
        self._variables: dict[str, Owner] = {}
        self._files: dict[str, tuple[Owner, Rule]] = {}
        self._paths: dict[str, _Node] = {}
        self._keys: dict[str, dict[str, _Node]] = {}

    def take(self, owner: Owner, rule: Rule) -> Clash | None:
        """Take the place of a rule without faults; return the first thing that speaks against it."""
        match rule.target:
            case EnvTarget(name):
                first = self._variables.setdefault(name, owner)
                return None if first is owner else Clash("the same variable as", first)
            case FileTarget(path, _):
                return self._take_file(path, owner, rule)
            case _:
                return None  # no form of this engine's goes behind a flag

    def _take_file(self, path: str, owner: Owner, rule: Rule) -> Clash | None:
        if path not in self._files:
            self._files[path] = (owner, rule)
            if (other := _enter(self._paths, tuple(path.split("/")), owner)) is not None:
                return Clash("a file where a folder is needed for", other)
        first, like = self._files[path]
        if (rule.shape.format, rule.shape.merge) != (like.shape.format, like.shape.merge):
            mine, theirs = _written(rule), _written(like)
            ends = "for the same file as"
            return Clash(f"{mine} beside {theirs}, {ends}", first, f"{theirs} beside {mine}, {ends}")
        if rule.shape.format == template.TEXT:
            return None if first is owner else Clash("the same file, which is one text, as", first)
        names = self._keys.setdefault(path, {})
        for native in _native_paths(rule):
            if (other := _enter(names, native, owner)) is not None and other is not owner:
                return Clash("a native key at or under one of", other)
        return None


def _written(rule: Rule) -> str:
    return f'format = "{rule.shape.format}", merge = {"true" if rule.shape.merge else "false"}'


def _enter(names: dict[str, _Node], path: Path, owner: Owner) -> Owner | None:
    """Note a value at a path; return who has one there, above it or below it already."""
    for name in path[:-1]:
        node = names.setdefault(name, _Node(owner))
        if node.value is not None:
            return node.value
        names = node.below
    last = names.get(path[-1])
    if last is None:
        names[path[-1]] = _Node(owner, owner)
        return None
    return last.value or last.first


def _native_paths(rule: Rule) -> list[Path]:
    assert isinstance(rule.target, FileTarget), "the caller has looked"
    if rule.shape.template is None:
        return [native_file.native_path(rule.shape, rule.target.key)]
    return [path for path, _ in tree.leaves(template.read(rule.shape.format, rule.shape.template))]
