"""The files of one launch: those that are written whole, and what goes into those of somebody else. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kt_manifest import words
from kt_manifest.contract.snapshot import Adapter, FileTarget, Rule, Shape
from kt_manifest.launch import agent_home, template
from kt_manifest.launch.agent_home import RenderedFile, RenderRefused
from kt_manifest.launch.delivery import Delivery
from kt_manifest.launch.native import document, tree
from kt_manifest.launch.native.document import Edit
from kt_manifest.launch.native.tree import MISSING, Occupied, Path
from kt_manifest.launch.run_facts import RunFacts


@dataclass(frozen=True, slots=True)
class MergedFile:
    """Values that go into a file of the Agent Home, each at its path; without any, what was put there is put back."""

    path: str
    format: str
    edits: tuple[Edit, ...] = field(repr=False)


def of(
    adapter: Adapter, delivery: Delivery, run: RunFacts
) -> tuple[tuple[RenderedFile, ...], tuple[MergedFile, ...]]:
    """Return the files of a launch, in the order of the mapping: written whole, and merged.

    Raises:
        RenderRefused: two values would stand in one place. What `Delivery` raises.
    """
    written: list[RenderedFile] = []
    merged: list[MergedFile] = []
    header = (
        f"{agent_home.HEADER} for instance {run.instance_id}, run {run.run_id}; rewritten at each start.\n"
    )
    for path, rules in _by_path(adapter).items():
        shape = rules[0].shape
        if shape.format == template.TEXT:
            written.append(RenderedFile(path, _plain(rules[0], delivery), marked=False))
            continue
        edits = tuple(edit for rule in rules for edit in _edits(rule, delivery))
        _refuse_unwritable(path, shape.format, edits)
        if shape.merge:
            merged.append(MergedFile(path, shape.format, edits))
        else:
            written.append(_whole(path, shape, edits, header))
    return tuple(written), tuple(merged)


def native_path(shape: Shape, key: str) -> Path:
    """Return the names that a rule's key leads through; the variables of an env file are not nested."""
    return (key,) if shape.format == "env" else tuple(key.split("."))


def _by_path(adapter: Adapter) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in adapter.mapping:
        if isinstance(rule.target, FileTarget):
            found.setdefault(rule.target.path, []).append(rule)
    return found


def _plain(rule: Rule, delivery: Delivery) -> str:
    if delivery.value(rule.key) is None:
        return ""
    filled = delivery.filled(rule)
    return "" if filled is MISSING else str(filled)


def _edits(rule: Rule, delivery: Delivery) -> Iterable[Edit]:
    assert isinstance(rule.target, FileTarget), "the caller has looked"
    if delivery.value(rule.key) is None:
        return ()
    if rule.shape.template is not None:
        return list(tree.leaves(delivery.filled(rule)))
    value = delivery.typed(rule.key)
    path = native_path(rule.shape, rule.target.key)
    return [(path, delivery.text(rule.key) if rule.shape.format == "env" else value)]


def _whole(path: str, shape: Shape, edits: Sequence[Edit], header: str) -> RenderedFile:
    form = document.FORMATS[shape.format]
    if not edits:
        return RenderedFile(path, "", marked=form.has_comments)
    try:
        text = form.write(tree.of(edits))
    except Occupied as error:
        raise RenderRefused(path, got=f"two values at {words.shown('.'.join(error.path))}") from error
    return RenderedFile(path, (header if form.has_comments else "") + text, marked=form.has_comments)


def _refuse_unwritable(path: str, format_: str, edits: Sequence[Edit]) -> None:
    for place, value in edits:
        if format_ == "toml" and _holds_null(value):
            raise RenderRefused(path, got=f"null at {words.shown('.'.join(place))}, which TOML cannot say")


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_null, value.values()))
    return any(map(_holds_null, value)) if isinstance(value, list) else value is None
