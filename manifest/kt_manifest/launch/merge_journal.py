"""What was in the files of an Agent Home before values were put into them: one file in that Home, replaced whole.

It is written before the file that it speaks of. An entry names two states of that file, the one before the change and
the one after, and in both the original is the same: whichever of the two a crash leaves, the way back is known.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kt_manifest import exit_codes
from kt_manifest.home_names import MERGED
from kt_manifest.launch import agent_home
from kt_manifest.launch.agent_home import RenderRefused
from kt_manifest.launch.native import document
from kt_manifest.launch.native.tree import Path

VERSION = 1


@dataclass(frozen=True, slots=True)
class Merged:
    """One file that values were put into.

    Args:
        original: its text without any of ours; None where there was no file.
        mode: its permissions then.
        states: digests of the texts whose original this is.
        ours: what was put at each path, as digests of the values: more than one while a change may be unfinished.
    """

    format: str
    original: str | None = field(repr=False)
    mode: int
    states: tuple[str, ...]
    ours: Mapping[Path, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Journal:
    """All of it: files merged into, and digests of files written whole that do not say themselves whose they are."""

    merged: Mapping[str, Merged] = field(default_factory=dict)
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class JournalUnreadable(Exception):
    """The journal of an Agent Home is damaged: nobody can say any more what was in its files before."""

    exit_code = exit_codes.FAILED

    def __init__(self, got: str) -> None:
        self.got = got
        self.wanted = f"a journal of version {VERSION}"
        self.do = "move it away: what is in the agent's files now then counts as theirs"
        super().__init__(f"unreadable {MERGED} in the Agent Home: got {got}, wanted {self.wanted}; {self.do}")


def read(root: int) -> Journal:
    """Return the journal of the open Agent Home, an empty one where there is none. Raises JournalUnreadable."""
    data = _bytes(root)
    if data is None:
        return Journal()
    try:
        facts = json.loads(data)
        if facts["schema_version"] != VERSION:
            raise JournalUnreadable(f"version {facts['schema_version']!r}"[:60])
        return Journal(
            {path: _merged(entry) for path, entry in facts["merged"].items()},
            {path: _texts(states) for path, states in facts["written"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise JournalUnreadable(f"a damaged one ({type(error).__name__})") from error


def save(root: int, journal: Journal) -> None:
    """Replace the journal of the open Agent Home; without entries there is none. Raises RenderRefused."""
    if not journal.merged and not journal.written:
        agent_home.remove(root, MERGED, ours=True)
        return
    facts = {
        "schema_version": VERSION,
        "merged": {path: _plain(entry) for path, entry in journal.merged.items()},
        "written": {path: list(states) for path, states in journal.written.items()},
    }
    agent_home.put(root, MERGED, json.dumps(facts, ensure_ascii=False).encode(), mode=0o600, ours=True)


def digest(text: str) -> str:
    """Return what a file's text is recognised by."""
    return hashlib.sha256(text.encode()).hexdigest()


def refreshed(entry: Merged | None, fresh: Merged) -> Merged:
    """Return the entry that is kept already where it says all that a fresh one says, else the fresh one."""
    if entry is None or replace(fresh, states=entry.states, ours=entry.ours) != entry:
        return fresh
    known = fresh.ours.keys() == entry.ours.keys() and all(
        set(states) <= set(entry.ours[path]) for path, states in fresh.ours.items()
    )
    return entry if known and set(fresh.states) <= set(entry.states) else fresh


def base(entry: Merged | None, text: str | None) -> tuple[str | None, dict[Path, str]]:
    """Return a file's text without what is ours in it, and which of our values are in it now, as digests.

    A value that somebody has changed since is theirs, and stays.

    Raises:
        document.Unreadable, document.Uneditable.
    """
    if entry is None or text is None:
        return text, {}
    there = document.values(entry.format, text, entry.ours)
    ours = {
        path: found for path, value in there.items() if (found := document.digest(value)) in entry.ours[path]
    }
    if digest(text) in entry.states:
        return entry.original, ours
    return document.put_back(entry.format, text, entry.original, ours), ours


def ours_of(
    format_: str, text: str, paths: Iterable[Path], before: Mapping[Path, str]
) -> dict[Path, tuple[str, ...]]:
    """Return what to recognise our values by: those in the new text, and those that the old one still holds."""
    now = {path: document.digest(value) for path, value in document.values(format_, text, paths).items()}
    return {
        path: tuple(dict.fromkeys(states[path] for states in (before, now) if path in states))
        for path in {**before, **now}
    }


def _bytes(root: int) -> bytes | None:
    try:
        found = agent_home.read(root, MERGED, ours=True)
    except RenderRefused as error:
        raise JournalUnreadable(error.got) from error
    return None if found is None else found.data


def _plain(entry: Merged) -> dict[str, Any]:
    return {
        "format": entry.format,
        "original": entry.original,
        "mode": entry.mode,
        "states": list(entry.states),
        "ours": [{"path": list(path), "states": list(states)} for path, states in entry.ours.items()],
    }


def _merged(facts: dict[str, Any]) -> Merged:
    original = facts["original"]
    if facts["format"] not in document.FORMATS or not isinstance(original, str | None):
        raise ValueError("an entry that was not written here")
    return Merged(
        format=facts["format"],
        original=original,
        mode=int(facts["mode"]) & 0o777,
        states=_texts(facts["states"]),
        ours={_texts(item["path"]): _texts(item["states"]) for item in facts["ours"]},
    )


def _texts(items: Any) -> tuple[str, ...]:
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("something else than texts")
    return tuple(items)
