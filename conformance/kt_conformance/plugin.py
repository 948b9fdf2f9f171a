"""The pytest plugin `ktmeter.conformance`: an adapter's sections as tests.

    pytest -p ktmeter.conformance --kt-adapter ./my-agent

One test a section, beside whatever else is collected; a section that is not applicable is a skipped test. In tests of
one's own the fixture `kt_conformance` gives a function that runs the kit. The one file that knows pytest; nothing of
the kit is loaded until it is used, since pytest loads this everywhere where kt is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kt_conformance.report import Report, Result
    from kt_conformance.rig import Rig

_RUN = pytest.StashKey["_Run"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the kit's options."""
    options = parser.getgroup("kt", "the conformance kit of kt")
    options.addoption(
        "--kt-adapter", metavar="PATH", help="test this adapter.toml, or the one in this folder"
    )
    options.addoption("--kt-section", action="append", default=[], metavar="NAME", help="only this section")
    options.addoption("--kt-exec", metavar="PROGRAM", help="start this in the place of the adapter's program")
    options.addoption(
        "--kt-arg", action="append", default=[], metavar="WORD", help="give it this argument first"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Judge the options before anything is collected."""
    if (path := session.config.getoption("--kt-adapter")) is None:
        return
    from kt_conformance import kit, subject
    from kt_manifest.contract import manifest

    try:
        names = kit.chosen(session.config.getoption("--kt-section"))
        found = subject.load(
            Path(path),
            program=session.config.getoption("--kt-exec"),
            arguments=session.config.getoption("--kt-arg"),
        )
    except (
        kit.UnknownSection,
        manifest.ManifestNotFound,
        manifest.ManifestUnreadable,
        manifest.ManifestInvalid,
        manifest.ContractIncompatible,
    ) as error:
        raise pytest.UsageError(str(error)) from error
    session.config.stash[_RUN] = _Run(found, names)


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add one item a section."""
    run = config.stash.get(_RUN, None)
    if run is None:
        return
    group = _Sections.from_parent(session, name="kt-conformance", nodeid="kt-conformance")
    items.extend(SectionItem.from_parent(group, name=name, run=run) for name in run.names)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the engine, however the session ended."""
    if (run := config.stash.get(_RUN, None)) is not None:
        run.close()


@pytest.fixture
def kt_conformance() -> Callable[..., Report]:
    """Give `kit.run`: call it with the path of an adapter, and assert on the report."""
    from kt_conformance import kit

    return kit.run


class _Run:
    """The rig that all items share: made for the first, ended after the last."""

    def __init__(self, found: Any, names: list[str]) -> None:
        self.found = found
        self.names = names
        self._rig: Rig | None = None

    def result(self, name: str, tell: Callable[[str], None]) -> Result:
        """Run one section; `tell` is told what earlier runs had left. Raises what making the engine raises."""
        from kt_conformance import kit, rig

        if self._rig is None:
            self._rig = rig.Rig(tell=tell).__enter__()
        return kit.one(self.found, self._rig, name)

    def close(self) -> None:
        """End the rig, where there is one."""
        if self._rig is not None:
            self._rig.close()
            self._rig = None


class _Sections(pytest.Collector):
    """The place of the items in pytest's tree."""

    def collect(self) -> Iterator[pytest.Item]:
        """Collect nothing: the items are added once, behind what was asked for."""
        return iter(())


class SectionItem(pytest.Item):
    """One section as a test."""

    def __init__(self, *, run: _Run, **known: Any) -> None:
        super().__init__(**known)
        self._run = run

    def runtest(self) -> None:
        """Run it: a fail fails, what is not applicable is skipped."""
        from kt_conformance import report

        result = self._run.result(self.name, lambda sentence: self.warn(pytest.PytestWarning(sentence)))
        facts = {"driven_by": result.driven_by, "warnings": list(result.warnings)}
        self.user_properties += list(facts.items())
        for sentence in result.warnings:
            self.warn(pytest.PytestWarning(f"{self.name}: {sentence}"))
        if result.status == report.NOT_APPLICABLE:
            pytest.skip(result.reason or "not applicable")
        if result.status == report.FAIL:
            pytest.fail(result.reason or "failed", pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say what is shown of it."""
        return self.path, None, f"kt-conformance: {self.name}"
