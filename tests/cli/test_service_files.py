import configparser
import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from kt_cli import service_files

ODD = [
    "plain",
    "with space",
    "per%hcent",
    "dol$HOME",
    "quo\"te'",
    "back\\slash",
    "ünï",
    "semi;colon #hash",
    "=a",
]


def unit(folder: Path, program: str = "python") -> str:
    words = [str(folder / program), "-m", "kt_supervisor.engine", "--state-dir", str(folder)]
    return service_files.systemd_unit(words, {"KT_SERVICE": "systemd", "X": f"{folder}"}, state=folder)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("name", ODD)
def test_systemd_itself_accepts_the_unit_whatever_the_paths_hold(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "python").symlink_to("/bin/true")
    draft = tmp_path / "kt-engine.service"
    draft.write_text(unit(folder))
    variables = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}

    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", draft],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
    )

    # Known from systemd 254 on; an earlier one says so and goes on.
    told = [line for line in done.stderr.splitlines() if "'DelegateSubgroup'" not in line]
    assert (0, []) == (done.returncode, told)


def test_systemd_ends_the_engine_and_nothing_else(tmp_path: Path) -> None:
    parsed = configparser.RawConfigParser(strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit(tmp_path))

    service = parsed["Service"]
    assert ("process", "yes", "always", "continue") == (
        service["KillMode"],
        service["Delegate"],
        service["Restart"],
        service["OOMPolicy"],
    )
    assert "PrivateTmp" not in service
    assert service["ExecStart"].startswith(f'"{tmp_path}/python" "-m" "kt_supervisor.engine"')


def test_no_word_can_begin_a_line_of_its_own(tmp_path: Path) -> None:
    text = unit(Path("/tmp/a\nExecStopPost=/bin/evil\n"))

    assert not [line for line in text.splitlines() if line.startswith("ExecStopPost")]
    assert "\\x0a" in text


@pytest.mark.parametrize("name", ODD)
def test_launchd_is_told_to_abandon_the_group(name: str) -> None:
    words = [f"/opt/{name}/python", "-m", "kt_supervisor.engine"]

    job = plistlib.loads(
        service_files.launchd_agent(words, {"KT_SERVICE": "launchd"}, label="x", log=Path("/l")).encode()
    )

    assert words == job["ProgramArguments"]
    assert (True, True, True) == (job["AbandonProcessGroup"], job["KeepAlive"], job["RunAtLoad"])


def test_what_xml_cannot_hold_is_refused_in_words() -> None:
    with pytest.raises(service_files.NotWritable, match="move kt or its state"):
        service_files.launchd_agent(["/opt/\x01/python"], {}, label="x", log=Path("/l"))


def test_each_state_directory_has_a_service_of_its_own() -> None:
    usual = Path("/home/x/.local/share/ktesio")

    assert "" == service_files.suffix(usual, usual)
    assert service_files.suffix(Path("/a"), usual) != service_files.suffix(Path("/b"), usual)
