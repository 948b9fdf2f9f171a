"""A run of the kit: the sections one after the other, each with its time; every way of ending is a complete report.

Only two things come through: `KeyboardInterrupt`, after everything is cleaned up, and the faults of whoever asked (no
manifest, no such section).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kt_client.errors import KtError
from kt_conformance import report, subject
from kt_conformance.bounded_client import WHOLE_S
from kt_conformance.catalogue import SECTIONS
from kt_conformance.deadline import Deadline
from kt_conformance.report import NotApplicable, Report, Result, SectionFailed
from kt_conformance.rig import Rig
from kt_conformance.stage import Stage
from kt_manifest import nearest
from kt_manifest.contract import manifest

SECTION_S = 30.0
Telling = Callable[[Result], None]


class UnknownSection(Exception):
    """The kit has no section of this name."""

    exit_code = 2

    def __init__(self, got: str) -> None:
        self.got = got
        self.wanted = f"one of {', '.join(SECTIONS)}"
        super().__init__(
            f"unknown section: got {got!r}, wanted {self.wanted}; {nearest.suggestion(got, frozenset(SECTIONS))}"
        )


def run(
    path: Path,
    *,
    sections: Sequence[str] = (),
    program: str | None = None,
    arguments: Sequence[str] = (),
    begins: Callable[[str], None] = lambda _: None,
    ends: Telling = lambda _: None,
) -> Report:
    """Test an adapter, and return what came of it.

    Args:
        path: its adapter.toml, or the folder that holds one.
        sections: which to run; none for all.
        program: a stand-in for the adapter's program.
        arguments: what the program gets before the adapter's own arguments.
        begins: told the name of each section that begins.
        ends: told each result.

    Raises:
        UnknownSection: exit 2. ManifestNotFound: exit 3.
    """
    names = chosen(sections)
    try:
        found = subject.load(path, program=program, arguments=arguments)
    except (manifest.ManifestUnreadable, manifest.ManifestInvalid, manifest.ContractIncompatible) as error:
        results = [Result(section=name, status=report.FAIL, reason=str(error)) for name in names]
        for result in results:
            ends(result)
        return Report(
            contract_version=manifest.CONTRACT_VERSION,
            adapter_kind=None,
            sections=tuple(results),
            of=len(SECTIONS),
        )
    results = []
    for result in _results(found, names, begins):
        results.append(result)
        ends(result)
    return Report(
        contract_version=manifest.CONTRACT_VERSION,
        adapter_kind=found.adapter.kind,
        sections=tuple(results),
        stand_in=found.stand_in,
        of=len(SECTIONS),
    )


def chosen(sections: Sequence[str]) -> list[str]:
    """Return the sections that are meant, in the kit's order, each once. Raises UnknownSection."""
    for name in sections:
        if name not in SECTIONS:
            raise UnknownSection(name)
    return [name for name in SECTIONS if not sections or name in sections]


def _results(found: subject.Subject, names: Sequence[str], begins: Callable[[str], None]) -> Iterator[Result]:
    whole = Deadline(WHOLE_S)
    done: set[str] = set()
    try:
        with Rig() as rig:
            for name in names:
                begins(name)
                result = one(found, rig, name, within_s=min(SECTION_S, whole.left_s))
                done.add(name)
                yield result
    except (KtError, OSError) as error:
        for name in names:
            if name not in done:
                yield Result(section=name, status=report.FAIL, reason=f"the kit could not run: {error}")


def one(found: subject.Subject, rig: Rig, name: str, *, within_s: float = SECTION_S) -> Result:
    """Run one section, and return what came of it; whatever goes wrong is its result."""
    begun = time.monotonic()
    stage = Stage(found, rig, Deadline(within_s))
    reason: str | None = None
    try:
        if not within_s:
            raise SectionFailed(f"the whole run took more than {WHOLE_S:g} s, and this section was not begun")
        SECTIONS[name](stage)
        status = report.PASS
    except NotApplicable as error:
        status, reason = report.NOT_APPLICABLE, report.in_one_line(str(error))
    except (SectionFailed, KtError) as error:
        status, reason = report.FAIL, report.in_one_line(str(error))
    except Exception as error:
        reason = report.in_one_line(f"the kit itself failed: {type(error).__name__}: {error}")
        status = report.FAIL
    return Result(
        section=name,
        status=status,
        reason=reason,
        driven_by=stage.driven_by,
        duration_s=time.monotonic() - begun,
        warnings=tuple(dict.fromkeys(stage.warnings)),
    )
