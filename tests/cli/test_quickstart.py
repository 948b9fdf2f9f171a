"""The commands of docs/quickstart.md, run in one shell, in order."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from kt_cli import main
from kt_cli.demo.provider_process import ProviderProcess

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quickstart.md"
MARK = "### block"


def blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def without_json(group: click.Group, name: str = "") -> set[str]:
    context, found = click.Context(group), set()
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        if isinstance(command, click.Group):
            found |= without_json(command, f"{name}{word} ")
        elif not any("--json" in option.opts for option in command.params):
            found.add(f"{name}{word}")
    return found


def test_the_verbs_that_have_no_json_are_those_that_the_page_names() -> None:
    told = re.search(r"All have `--json` but (.*?), which answer", PAGE.read_text(), re.DOTALL)
    assert told is not None

    assert without_json(main.cli) == {
        name.replace("\n", " ") for name in re.findall(r"`([^`]+)`", told.group(1))
    }


def test_every_command_of_the_quickstart_works(kt: Any, provider: ProviderProcess, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "kt").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kt_cli.main "$@"\n')
    (tools / "kt").chmod(0o755)
    script = "set -eu\n" + "".join(f"echo '{MARK}'\n{block}" for block in blocks())
    variables = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "UPSTREAM": f"{provider.url}/v1",
        "MODEL": "demo/answer",
    }

    done = subprocess.run(
        ["sh", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=kt.environment(**variables),
        timeout=100,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    _, registered, looked, _, metered, configured, ended = done.stdout.split(MARK)
    assert "Registered counter" in registered and "running" in registered
    assert "in 200 / out 42" in looked and "[agent-out] thinking" in looked
    assert "[agent-out] The ledger counts" in metered and "in 640 / out 32" in metered
    assert "-hello-" in configured and "no longer set" in configured
    assert "It takes effect at the next start." in configured
    assert "stopped" in ended and "Engine stopped" in ended
    assert ["demo/answer"] == [call.model for call in provider.calls()]


def test_the_wait_for_an_agent_that_failed_ends(kt: Any, tmp_path: Path) -> None:
    """Nobody answers at its provider's address, so that it never says a word on its standard output."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "kt").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kt_cli.main "$@"\n')
    (tools / "kt").chmod(0o755)
    variables = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "UPSTREAM": "http://127.0.0.1:9/v1",
        "MODEL": "demo/answer",
    }

    done = subprocess.run(
        ["sh", "-c", "".join(blocks()[2:4]) + "kt agent logs bot"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=kt.environment(**variables),
        timeout=60,
    )

    assert "[agent-err]" in done.stdout, done.stdout + done.stderr
    assert "agent-out" not in done.stdout
    assert "env.inherit names OPENAI_API_KEY, which is not set here" in done.stderr
