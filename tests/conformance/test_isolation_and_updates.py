"""What an adapter declares of isolation, updates and its release, held against a real process."""

import sys
from pathlib import Path

import pytest
from tests.conformance.conftest import Declared, fake, liar

from kt_conformance import kit, report
from kt_conformance.rig import Rig

VERSION = f"""
[kt.version]
command = ['{sys.executable}', '-c', 'print("agent 1.4.2")']
pattern = 'agent ([0-9.]+)'
"""


def posture(release: str) -> str:
    return f"""
[kt.isolation]
env = {{ XDG_DATA_HOME = "xdg/data" }}
validated = "{release}"
[kt.updates]
env = {{ NO_UPDATE = "1" }}
args = ["--no-update"]
config = {{ env = "CONTENT", key = "update.auto", value = false }}
managed_layer = false
verified = "{release}"
{VERSION}
"""


def test_what_is_declared_is_so(rig: Rig, tmp_path: Path) -> None:
    result = kit.one(Declared(fake(), more=posture("1.4.2")).subject(tmp_path), rig, "isolation_and_updates")

    assert (report.PASS, "subject") == (result.status, result.driven_by), result
    unseen, unused = result.warnings
    assert "that the agent obeys was not seen; that the switch reaches it was" in unseen
    assert "nothing was written in the folder of XDG_DATA_HOME" in unused


def test_what_keeps_to_its_folder_is_seen_to_and_what_is_allowed_is_no_matter(
    rig: Rig, tmp_path: Path
) -> None:
    more = '[kt.isolation]\nenv = { XDG_DATA_HOME = "xdg/data" }\n[kt.test]\noutside = [".gitconfig"]'

    result = kit.one(
        Declared(liar("keeps_to_its_folder"), more=more).subject(tmp_path), rig, "isolation_and_updates"
    )

    assert (report.PASS, "subject") == (result.status, result.driven_by), result
    assert not any("XDG_DATA_HOME" in text for text in result.warnings)
    assert [] == list(rig.root.glob("home*"))


def test_another_release_is_a_warning(rig: Rig, tmp_path: Path) -> None:
    result = kit.one(Declared(fake(), more=posture("1.3.0")).subject(tmp_path), rig, "isolation_and_updates")

    assert report.PASS == result.status
    assert 2 == sum("last tried on 1.3.0, and 1.4.2 is installed" in text for text in result.warnings)


def test_nothing_declared_is_not_applicable_and_said(rig: Rig, tmp_path: Path) -> None:
    result = kit.one(Declared(fake()).subject(tmp_path), rig, "isolation_and_updates")

    assert report.NOT_APPLICABLE == result.status
    assert any("nobody says whether the agent updates itself" in text for text in result.warnings)


def test_a_release_that_cannot_be_asked_is_a_warning(rig: Rig, tmp_path: Path) -> None:
    more = posture("1.4.2").replace(sys.executable, "no-such-agent")

    result = kit.one(Declared(fake(), more=more).subject(tmp_path), rig, "isolation_and_updates")

    assert report.PASS == result.status
    assert any("no-such-agent could not be asked" in text for text in result.warnings)


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("unset XDG_DATA_HOME", "has no XDG_DATA_HOME"),
        ("unset NO_UPDATE", "not started with NO_UPDATE as declared"),
        ("rm -r xdg", "the folder of XDG_DATA_HOME is not there"),
        ("chmod 755 xdg/data", "the folder of XDG_DATA_HOME is not there with mode 0700"),
        ("export CONTENT={}", "update.auto in CONTENT is not as declared"),
    ],
)
def test_a_wrapper_that_undoes_it_is_caught(rig: Rig, tmp_path: Path, script: str, reason: str) -> None:
    argv = ("sh", "-c", f'{script}; exec "$@"', "wrapper", *liar("has_nothing_to_say"))

    result = kit.one(Declared(argv, more=posture("1.4.2")).subject(tmp_path), rig, "isolation_and_updates")

    assert report.FAIL == result.status, result
    assert reason in (result.reason or "")


def test_a_wrapper_that_drops_the_switch_is_caught(rig: Rig, tmp_path: Path) -> None:
    argv = ("sh", "-c", 'exec "$1" "$2" "$3" "$4"', "wrapper", *liar("has_nothing_to_say"))

    result = kit.one(Declared(argv, more=posture("1.4.2")).subject(tmp_path), rig, "isolation_and_updates")

    assert "the arguments that switch self-update off did not reach the process" in (result.reason or "")
