import sys

import pytest

from kt_manifest.contract import capability
from kt_manifest.contract.capability import Declaration, Level, Support

MIXED = Declaration(
    pause=Support(linux=Level.GUARANTEED, macos=Level.BEST_EFFORT),
    interaction=Support(windows=Level.BEST_EFFORT),
)


@pytest.mark.parametrize(
    ("os_name", "pause", "interaction"),
    [
        ("linux", "guaranteed", "unsupported"),
        ("macos", "best-effort", "unsupported"),
        ("windows", "unsupported", "best-effort"),
        ("freebsd14", "unsupported", "unsupported"),
    ],
)
def test_a_declaration_is_projected_onto_any_system_from_any_other(
    os_name: str, pause: str, interaction: str
) -> None:
    levels = capability.project(MIXED, os_name)

    assert levels == {"pause": pause, "interaction": interaction}
    assert list(levels) == ["pause", "interaction"]


def test_nothing_declared_is_unsupported_everywhere() -> None:
    assert {Level.UNSUPPORTED} == {
        level for system in capability.SYSTEMS for level in capability.project(Declaration(), system).values()
    }


@pytest.mark.parametrize(
    ("platform", "name"),
    [("linux", "linux"), ("darwin", "macos"), ("win32", "windows"), ("freebsd14", "freebsd14")],
)
def test_systems_have_the_contracts_names(platform: str, name: str) -> None:
    assert name == capability.os_name(platform)


def test_this_system_is_the_one_that_python_runs_on() -> None:
    assert capability.os_name(sys.platform) == capability.this_os()
