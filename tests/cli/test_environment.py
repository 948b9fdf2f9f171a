import os
import subprocess
import sys
from pathlib import Path

import pytest

from kt_cli import environment
from kt_client.errors import KtError

HOME = {"HOME": "/home/someone"}


@pytest.mark.parametrize(
    ("variables", "platform", "expected"),
    [
        ({"KTESIO_STATE_DIR": "/a/b"}, "linux", "/a/b"),
        ({"KTESIO_STATE_DIR": "/a//b/../c/"}, "linux", "/a/c"),
        ({"HEKMA_STATE_DIR": "/a/b"}, "linux", "/a/b"),
        ({"HEKMA_STATE_DIR": "/a/b/", "KTESIO_STATE_DIR": "/a/b"}, "linux", "/a/b"),
        ({"KTESIO_STATE_DIR": "", **HOME}, "linux", "/home/someone/.local/share/ktesio"),
        (HOME, "linux", "/home/someone/.local/share/ktesio"),
        ({**HOME, "XDG_DATA_HOME": "/data"}, "linux", "/data/ktesio"),
        ({**HOME, "XDG_DATA_HOME": "data"}, "linux", "/home/someone/.local/share/ktesio"),
        (HOME, "darwin", "/home/someone/Library/Application Support/ktesio"),
        ({**HOME, "XDG_DATA_HOME": "/data"}, "darwin", "/home/someone/Library/Application Support/ktesio"),
    ],
)
def test_the_state_directory_is_the_named_one_else_the_platforms(
    variables: dict[str, str], platform: str, expected: str
) -> None:
    assert Path(expected) == environment.state_dir(variables, platform=platform)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"KTESIO_STATE_DIR": "state"}, "KTESIO_STATE_DIR='state', wanted an absolute path"),
        ({"KTESIO_STATE_DIR": "./state"}, "wanted an absolute path"),
        ({"KTESIO_STATE_DIR": "~/state"}, "wanted an absolute path"),
        ({"HEKMA_STATE_DIR": "state"}, "HEKMA_STATE_DIR='state', wanted an absolute path"),
        ({"KTESIO_STATE_DIR": "/a", "HEKMA_STATE_DIR": "/b"}, "wanted one state directory"),
        ({"KTESIO_STATE_DIR": "/" + "a" * 4000}, "wanted at most 3500"),
    ],
)
def test_a_state_directory_that_cannot_be_meant_is_refused(variables: dict[str, str], words: str) -> None:
    with pytest.raises(KtError, match=words) as caught:
        environment.state_dir(variables, platform="linux")

    assert 2 == caught.value.exit_code


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colour_is_what_the_environment_wants(variables: dict[str, str], expected: bool) -> None:
    assert expected is environment.colour_wanted(variables)


def test_a_file_is_no_state_directory(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    variables = {**os.environ, "KTESIO_STATE_DIR": str(tmp_path / "state")}

    done = subprocess.run(
        [sys.executable, "-m", "kt_cli.main", "agent", "list"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == done.returncode
    assert "wanted one of our own" in done.stderr
