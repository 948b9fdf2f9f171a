"""Each code of the table, from the whole command."""

from pathlib import Path
from typing import Any

import pytest

from kt_ledger import exit_codes


def test_every_code_has_a_meaning() -> None:
    assert {0, 1, 2, 3, 4, 5, 6, 130} == set(exit_codes.MEANINGS)


def test_0_is_done(kt: Any) -> None:
    assert exit_codes.DONE == kt("agent", "list").code


def test_1_is_an_invalid_manifest(kt: Any, tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text('contract_version = "1.0.0"\n')

    done = kt("agent", "register", "x", "--manifest", str(tmp_path))

    assert exit_codes.FAILED == done.code
    assert "[adapter]" in done.err
    assert not kt.state.exists()


def test_2_is_an_unknown_flag(kt: Any) -> None:
    assert exit_codes.USAGE == kt("agent", "list", "--colour").code


@pytest.mark.parametrize(
    "words",
    [
        ("register", "x", "--manifest", "nowhere"),
        ("show", "x"),
        ("usage", "x"),
        ("start", "x"),
        ("stop", "x"),
        ("logs", "x"),
        ("remove", "x"),
        ("config", "get", "x"),
        ("config", "set", "x", "model", "m"),
        ("config", "unset", "x", "model"),
    ],
    ids=" ".join,
)
def test_3_is_an_agent_or_a_manifest_that_is_not_there(kt: Any, words: tuple[str, ...]) -> None:
    done = kt("agent", *words)

    assert (done.code, done.out) == (exit_codes.NOT_FOUND, "")
    assert not kt.state.exists()


@pytest.mark.parametrize("code", [exit_codes.WRONG_STATE, exit_codes.UNSUPPORTED, exit_codes.TIMED_OUT])
def test_4_5_and_6_are_the_engines_word(kt: Any, script: Any, code: int) -> None:
    script.answer_json(409, {"error": {"code": "any", "exit_code": code, "message": "got this, wanted that"}})

    done = kt("agent", "stop", "x")

    assert (code, "", "kt: got this, wanted that\n") == (done.code, done.out, done.err)
