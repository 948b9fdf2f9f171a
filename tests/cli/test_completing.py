"""What a shell is offered; asked as a shell asks, in a process of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kt_cli.commands.completion import SHELLS
from kt_manifest.configuration import options


def _offered(kt: Any, *words: str) -> list[str]:
    asked = {
        "_KT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("kt", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = kt(env=asked)
    assert "" == done.err
    return [line.partition(",")[2] for line in done.out.split("\n") if line]


@pytest.fixture
def homes(kt: Any) -> Path:
    """Agent Homes without an engine, and what is none."""
    folder = kt.state / "agents"
    for name in ("alpha", "beta", "bravo", ".removed-x"):
        (folder / name).mkdir(parents=True)
    (folder / "file").touch()
    return Path(folder)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["agent", "start", ""], ["alpha", "beta", "bravo"]),
        (["agent", "start", "b"], ["beta", "bravo"]),
        (["agent", "config", "get", "br"], ["bravo"]),
        (["agent", "config", "set", "beta", "limits.m"], ["limits.memory"]),
        (["agent", "config", "set", "beta", "restart.policy", ""], ["never", "on-failure", "always"]),
        (["agent", "config", "set", "beta", "autostart", "t"], ["true"]),
        (["agent", "config", "set", "beta", "model", ""], []),
        (["config", "unset", ""], []),
        (["config", "set", "logs"], ["logs.cap"]),
        (["adapter", "show", "open"], ["openai-compatible", "opencode"]),
        (["adapter", "validate", "claude"], ["claude-code"]),
        (["adapter", "test", "./x", "--section", "stop"], ["stop_tree"]),
        (["agent", "register", "x", "--adapter", "ai"], ["aider"]),
        (["agent", "register", "x", "--kind", "c"], ["command"]),
        (["agent", "start", "--set", "a=b", "al"], ["alpha"]),
        (["agent", "render", "al"], ["alpha"]),
        (["config", "get", "ag"], ["agent."]),
        (["config", "set", "metering.b"], []),
        (["config", "set", "restart.policy", "a"], ["always"]),
        (["agent", "start", "beta", "--set", "autos"], ["autostart="]),
        (["agent", "start", "beta", "--set", "autostart=t"], ["autostart=true"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_names_keys_and_values_are_offered(
    kt: Any, homes: Path, words: list[str], offered: list[str]
) -> None:
    assert offered == _offered(kt, *words)
    assert [homes] == list(kt.state.iterdir()), "completing starts and makes nothing"


def test_names_of_secrets_and_keys_that_are_set_are_offered_and_no_value(kt: Any, homes: Path) -> None:
    secrets = kt.state / "secrets.toml"
    secrets.touch(mode=0o600)
    secrets.write_text('ALPHA_KEY = "canary"\nBETA = "canary"\n')
    (homes / "beta" / "config.toml").write_text('model = "canary"\nagent.X = "canary"\n')
    (kt.state / "config.toml").write_text('restart.policy = "never"\n')
    key = "metering.upstream_api_key"

    assert ["ALPHA_KEY", "BETA"] == _offered(kt, "secret", "rm", "")
    assert ["secret:ALPHA_KEY", "secret:BETA"] == _offered(kt, "agent", "config", "set", "beta", key, "")
    assert ["secret:BETA"] == _offered(kt, "config", "set", "agent.X", "secret:B")
    assert ["model=secret:BETA"] == _offered(kt, "agent", "start", "beta", "--set", "model=secret:B")
    assert ["agent.X", "model"] == sorted(_offered(kt, "agent", "config", "unset", "beta", ""))
    assert ["restart.policy"] == _offered(kt, "config", "unset", "")


def test_files_that_cannot_be_read_offer_nothing(kt: Any, homes: Path) -> None:
    (kt.state / "secrets.toml").write_text("canary")
    (homes / "beta" / "config.toml").write_text("= canary")

    assert [] == _offered(kt, "secret", "rm", "")
    assert [] == _offered(kt, "agent", "config", "unset", "beta", "")


def test_every_key_that_an_operator_sets_is_offered(kt: Any) -> None:
    settable = {
        option.key
        for option in options.OPTIONS
        if option.effect in (options.Effect.AT_ONCE, options.Effect.NEXT_START)
    }

    assert settable | {"agent."} == set(_offered(kt, "config", "set", ""))


def test_nothing_is_offered_where_there_is_nothing(kt: Any) -> None:
    assert [] == _offered(kt, "agent", "start", "")
    assert not kt.state.exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_that_the_shell_takes(kt: Any, shell: str, tmp_path: Path) -> None:
    done = kt("completion", shell)

    assert (0, "") == (done.code, done.err)
    assert f"_KT_COMPLETE={shell}_complete" in done.out
    if found := shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(done.out)
        subprocess.run([found, "-n", str(script)], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="wants bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["agent", "start", "beta", "--set", "restart.pol"], "restart.policy="),
        (["agent", "start", "beta", "--set", "restart.policy", "="], "never on-failure always"),
        (["agent", "start", "beta", "--set", "restart.policy", "=", "n"], "never"),
        (["agent", "config", "set", "br"], "bravo"),
        (["agent", "start", "--set", "a", "=", "b", "al"], "alpha"),
        (["agent", "start", "beta", "--set", "model", "=", "secret", ":", "KEY_"], "KEY_ONE"),
        (["agent", "config", "set", "beta", "model", "secret", ":"], "KEY_ONE"),
    ],
)
def test_bash_itself_is_offered_what_it_replaces(
    kt: Any, homes: Path, tmp_path: Path, words: list[str], offered: str
) -> None:
    """As bash calls it: a word with `=` or `:` comes in pieces."""
    (kt.state / "secrets.toml").touch(mode=0o600)
    (kt.state / "secrets.toml").write_text('KEY_ONE = "x"\n')
    command = tmp_path / "kt"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kt_cli.main "$@"\n')
    command.chmod(0o700)
    (tmp_path / "script").write_text(kt("completion", "bash").out)
    line = " ".join(f"'{word}'" for word in ("kt", *words))
    code = (
        f'source "{tmp_path}/script"; COMP_WORDS=({line}); COMP_CWORD={len(words)}\n'
        '_kt_completion kt; echo "${COMPREPLY[@]}"'
    )

    done = subprocess.run(
        ["bash", "-c", code],
        capture_output=True,
        text=True,
        env=kt.environment(PATH=f"{tmp_path}:{os.environ['PATH']}"),
        check=True,
    )

    assert offered == done.stdout.strip()


def test_another_shell_is_refused_with_those_that_there_are(kt: Any) -> None:
    done = kt("completion", "tcsh")

    assert 2 == done.code
    assert "'bash', 'zsh', 'fish'" in done.err


def test_completing_loads_nothing_that_is_slow() -> None:
    slow = ("aiohttp", "asyncio", "pydantic", "rich", "sqlalchemy", "tomlkit")
    code = (
        "import sys\nfrom kt_cli import completing, main\nimport kt_cli.commands.fleet_config\n"
        f"completing.keys(None, None, '')\nprint(sorted(set(sys.modules) & {set(slow)}))"
    )

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]\n" == told.stdout
