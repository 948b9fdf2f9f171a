"""What came of a run: one result a section, and the document that the contract's readers know.

The fields of the contract come first and mean what it says; everything else is additive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 1
PASS = "pass"
FAIL = "fail"
NOT_APPLICABLE = "not_applicable"
SUBJECT = "subject"
PROBE = "probe"


class SectionFailed(Exception):
    """The adapter, or its agent, is not what it declares; or that could not be seen."""


class NotApplicable(Exception):
    """The adapter declares nothing that this section is about, or this system cannot show it."""


def in_one_line(text: str) -> str:
    """Return a reason without line ends, which the last lines of an agent come with."""
    parts = [part for line in text.splitlines() if (part := line.strip())]
    return "".join(
        part if last else f"{part} " if part.endswith(":") else f"{part} | "
        for part, last in zip(parts, [*[False] * (len(parts) - 1), True], strict=False)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One section: what came of it, why, and who was driven (None where nobody was)."""

    section: str
    status: str
    reason: str | None = None
    driven_by: str | None = None
    duration_s: float = 0.0
    warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the section's part of the report."""
        result = {"status": self.status} | ({} if self.reason is None else {"reason": self.reason})
        return {
            "section": self.section,
            "result": result,
            "driven_by": self.driven_by,
            "duration_s": round(self.duration_s, 3),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run. `adapter_kind` is None where the manifest could not be read that far, `of` is how many sections
    there are, run or not.
    """

    contract_version: str
    adapter_kind: str | None
    sections: tuple[Result, ...]
    stand_in: tuple[str, ...] = ()
    of: int | None = None

    @property
    def complete(self) -> bool:
        """Whether every section was asked for; what was left out is neither held nor broken."""
        return self.of is None or len(self.sections) == self.of

    @property
    def passed(self) -> bool:
        """Whether no section failed."""
        return not self.failures

    @property
    def failures(self) -> Sequence[Result]:
        """The sections that failed."""
        return [result for result in self.sections if result.status == FAIL]

    def section(self, name: str) -> Result:
        """Return one section's result."""
        return next(result for result in self.sections if result.section == name)

    def document(self) -> dict[str, Any]:
        """Return the report as its JSON has it; `stand_in` is the program that took the place of the adapter's own."""
        return {
            "schema_version": SCHEMA_VERSION,
            "contract_version": self.contract_version,
            "adapter_kind": self.adapter_kind,
            "sections": [result.document() for result in self.sections],
            "passed": self.passed,
            "complete": self.complete,
            "stand_in": list(self.stand_in),
        }
