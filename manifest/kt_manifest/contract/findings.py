"""A fault of a manifest as a value, and the half-checked document in which faults are looked for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kt_manifest import words
from kt_manifest.contract import schema

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")  # TOML 1.0.0, "Keys"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: where, of which kind, what was got, what is wanted, what to do.

    `at` is the path of the very key, where that is known better than by its section. `lacks` is the table in which
    something is not there: where a key of that table is unknown, that is the slip, and this is only what follows of it.
    """

    section: str
    kind: str
    got: str
    wanted: str
    do: str
    at: schema.Loc = ()
    lacks: schema.Loc | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A parsed document whose types are not to be trusted, and where its shape is known to be wrong."""

    document: dict[str, Any]
    misfits: tuple[schema.Misfit, ...]

    def misfits_of(self, kind: str) -> list[schema.Misfit]:
        """Return the misfits of one kind ("key", "word", "type"), in the order of the document."""
        return [misfit for misfit in self.misfits if misfit.kind == kind]

    def wrong_types(self, *prefix: str, exact: bool = False) -> Iterator[Finding]:
        """Give a finding for every wrong type at or below a path; with `exact`, at that path only."""
        for misfit in self.misfits_of("type"):
            if misfit.loc == prefix or (not exact and misfit.loc[: len(prefix)] == prefix):
                depth = _depth(misfit.loc)
                where = section(misfit.loc[:depth])
                inner = ".".join(_key(str(part)) for part in misfit.loc[depth:])
                name = f"{inner} = " if inner else ""
                got = f"{name}{words.shown(misfit.value)}"
                yield Finding(where, "invalid_field", got, misfit.wanted, "change its type", misfit.loc)

    def get(self, *path: str) -> Any:
        """Return what stands at a path, None where nothing does."""
        value: Any = self.document
        for part in path:
            if not isinstance(value, dict):
                return None
            value = value.get(part)
        return value

    def table(self, *path: str) -> dict[str, Any]:
        """Return the table at a path, an empty one where there is none."""
        value = self.get(*path)
        return value if isinstance(value, dict) else {}

    def items(self, *path: str) -> list[Any]:
        """Return the array at a path, an empty one where there is none."""
        value = self.get(*path)
        return value if isinstance(value, list) else []

    def is_table_or_absent(self, name: str) -> bool:
        """Tell whether a section has no wrong type of its own."""
        return isinstance(self.document.get(name, {}), dict)

    def missing(self, where: str, wanted: str, do: str) -> Finding:
        """Return the finding for a mandatory section that is absent or empty."""
        present = self.get(*where.strip("[]").split("."))
        return Finding(where, "missing_section", self.absence(present), wanted, do)

    @staticmethod
    def absence(value: object) -> str:
        """Say in which way something is not there."""
        return "nothing" if value is None else "an empty one"


def section(loc: schema.Loc) -> str:
    """Return a path as the file writes it, in brackets; a top-level value by its bare name."""
    if loc == ("contract_version",):
        return "contract_version"
    return "[" + ".".join(_key(str(part)) for part in loc) + "]"


def place(loc: schema.Loc, value: object) -> str:
    """Return the section that an unknown key stands in, or, at the top or when it is a section itself, its own."""
    if isinstance(value, dict) and len(loc) <= 2:
        return section(loc)
    return section(loc[: min(len(loc) - 1, _depth(loc))]) if len(loc) > 1 else _key(str(loc[0]))


def _depth(loc: schema.Loc) -> int:
    # Sections are one level deep in [adapter], [metering] and [interaction], three in [kt.config], two in the others.
    if loc[:2] == ("kt", "config"):
        return 3
    return 2 if loc[0] in ("lifecycle", "capabilities", "config", "kt") else 1


def _key(part: str) -> str:
    return part if _BARE_KEY.fullmatch(part) and len(part) <= words.SHOWN_CHARS else words.shown(part)
