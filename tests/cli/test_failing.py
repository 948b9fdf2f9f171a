"""How commands that fail are told, from the whole command."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kt_cli import failing
from kt_ledger import exit_codes


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["agent", "list", "--json"], True),
        (["agent", "register", "x", "--kind", "command", "--", "prog", "--json"], False),
        (["agent", "register", "x", "--json", "--", "prog"], True),
        (["agent", "list"], False),
        ([], False),
    ],
)
def test_a_flag_of_the_agents_own_command_is_not_ours(argv: list[str], wanted: bool) -> None:
    assert wanted == failing.wants_json(argv)


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("agent", "list", "--colour"), "usage", exit_codes.USAGE),
        (("agent", "lst"), "usage", exit_codes.USAGE),
        (("agent", "show", "x"), "not_found", exit_codes.NOT_FOUND),
        (("agent", "show", "X!"), "name_invalid", exit_codes.USAGE),
        (("agent", "register", "x", "--manifest", "nowhere"), "manifest_not_found", exit_codes.NOT_FOUND),
    ],
)
def test_with_json_a_failure_is_one_document(
    kt: Any, words: tuple[str, ...], code: str, exit_code: int
) -> None:
    done = kt(*words, "--json")
    plain = kt(*words)

    assert (exit_code, "") == (done.code, done.out)
    error = json.loads(done.err)["error"]
    assert (code, exit_code) == (error["code"], error["exit_code"])
    assert error["message"] in plain.err


def test_what_the_engine_refuses_keeps_the_engines_word(kt: Any, script: Any) -> None:
    script.answer_json(409, {"error": {"code": "not_running", "exit_code": 4, "message": "got this"}})

    done = kt("agent", "stop", "x", "--json")

    wanted = {"schema_version": 1, "error": {"code": "not_running", "exit_code": 4, "message": "got this"}}
    assert (4, "", wanted) == (done.code, done.out, json.loads(done.err))


def test_a_full_disk_under_the_answer_is_named(kt: Any) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            kt.command("agent", "list", "--json"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=kt.environment(),
            timeout=60,
        )

    assert exit_codes.FAILED == done.returncode
    assert "no_space" == json.loads(done.stderr)["error"]["code"]
