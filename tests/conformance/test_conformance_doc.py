"""What docs/conformance.md says is so."""

import re
import tomllib
from pathlib import Path

import click
import pytest
from tests.conformance.conftest import Declared, fake

from kt_cli.commands.adapter_test import test as verb
from kt_conformance import catalogue, subject

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "conformance.md").read_text("utf-8")
COMMANDS = re.findall(r"^    kt adapter test ((?:.*\\\n)*.*)$", PAGE, re.MULTILINE)
BLOCKS = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE, re.MULTILINE)


def test_it_describes_every_section_in_order() -> None:
    described = re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE)

    assert list(catalogue.SECTIONS) == described


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_are_understood(command: str) -> None:
    words = command.replace("\\\n", " ").replace('"', "").split()

    context = verb.make_context("test", words)

    assert isinstance(context, click.Context)
    assert set(context.params["sections"]) <= set(catalogue.SECTIONS)


def test_its_manifest_is_accepted(tmp_path: Path) -> None:
    block = next(block for block in BLOCKS if "[kt.test]" in block)
    text = "\n".join(line[4:] for line in block.splitlines())

    trial = Declared(fake(), more=text).subject(tmp_path).trial

    assert ("--once",) == trial.args
    assert trial.ends_when_done
    declared = set(tomllib.loads(text)["kt"]["test"])
    assert {"args", "say", "settings", "stream", "crash", "dump", "outside", "ends", "reports"} == declared


def test_its_test_is_a_test(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    scope: dict[str, object] = {}
    exec(compile(found.group(1), "conformance.md", "exec"), scope)
    asked: list[object] = []

    class Passed:
        passed = True

    def kit(path: Path, *, sections: list[str]) -> Passed:
        asked.extend([path, *sections])
        return Passed()

    scope["test_my_adapter"](kit)  # type: ignore[operator]

    assert [Path("my-agent"), "lifecycle", "pause"] == asked
    assert set(asked[1:]) <= set(catalogue.SECTIONS)


def test_the_shipped_templates_name_a_program_of_the_reader(tmp_path: Path) -> None:
    for name in ("self-reporting", "openai-compatible"):
        start = subject.load(REPOSITORY / "adapters" / name).adapter.start

        assert start is not None
        assert "my-agent" == start.exec
