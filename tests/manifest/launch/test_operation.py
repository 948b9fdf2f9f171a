from pathlib import Path

import pytest

from kt_manifest.contract.snapshot import Template
from kt_manifest.launch import operation
from kt_manifest.launch.executable import ExecutableMissing


def _program(folder: Path, name: str = "agentctl") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_an_operation_is_found_on_the_agents_own_path(tmp_path: Path) -> None:
    program = _program(tmp_path / "bin")
    template = Template(exec="agentctl", args=("stop", "--now"), env={"A": "1"})

    command = operation.command(template, {"PATH": str(tmp_path / "bin"), "B": "2"}, tmp_path)

    assert (str(program), "stop", "--now") == command.argv
    assert {"A": "1"} == command.env


def test_a_path_that_the_operation_sets_counts(tmp_path: Path) -> None:
    program = _program(tmp_path / "own")
    template = Template(exec="agentctl", env={"PATH": str(tmp_path / "own")})

    assert str(program) == operation.command(template, {"PATH": "/nowhere"}, tmp_path).argv[0]


def test_an_operation_cannot_speak_for_another_run(tmp_path: Path) -> None:
    _program(tmp_path)
    template = Template(exec="agentctl", env={"KT_RUN": "x", "KT_INSTANCE": "y", "KT_OTHER": "z"})

    assert {"KT_OTHER": "z"} == operation.command(template, {"PATH": str(tmp_path)}, tmp_path).env


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExecutableMissing):
        operation.command(Template(exec="agentctl"), {"PATH": str(tmp_path)}, tmp_path)


def test_values_do_not_show_in_a_repr(tmp_path: Path) -> None:
    _program(tmp_path)

    assert "sk-canary" not in repr(
        operation.command(
            Template(exec="agentctl", env={"K": "sk-canary"}), {"PATH": str(tmp_path)}, tmp_path
        )
    )
