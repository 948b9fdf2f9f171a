"""`kt secret` without an engine, as it is typed and as it is piped; tests/acceptance has it with one."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

CANARY = "canary-typed-8d0e"


def piped(kt: Any, *words: str, data: bytes = CANARY.encode(), **variables: str) -> Any:
    return subprocess.run(
        kt.command("secret", *words),
        input=data,
        capture_output=True,
        timeout=60,
        env=kt.environment(**variables),
    )


def test_a_piped_value_is_kept_without_its_newline_and_without_an_engine(kt: Any) -> None:
    done = piped(kt, "set", "KEY", data=CANARY.encode() + b"\n")

    assert (0, b"Kept KEY in secrets.toml.\n") == (done.returncode, done.stdout)
    assert b"newline at the end of the input is not part of the value" in done.stderr
    assert f'KEY = "{CANARY}"\n' == (kt.state / "secrets.toml").read_text()
    assert 0o600 == (kt.state / "secrets.toml").stat().st_mode & 0o777
    assert ["secrets.toml"] == [path.name for path in kt.state.iterdir()]


def test_only_one_newline_is_taken_away_and_nothing_else(kt: Any) -> None:
    done = piped(kt, "set", "KEY", "--json", data=b"  spaces stay  ")

    assert {
        "schema_version": 1,
        "name": "KEY",
        "place": "secrets.toml",
        "replaced": False,
        "rekeyed": [],
        "at_next_start": [],
        "notices": [],
    } == json.loads(done.stdout)
    assert b"" == done.stderr
    assert 'KEY = "  spaces stay  "\n' == (kt.state / "secrets.toml").read_text()


def test_a_value_that_is_typed_on_a_terminal_is_not_shown(kt: Any) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        kt.command("secret", "set", "KEY"),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=kt.environment(),
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    while b"Value of KEY" not in seen:
        seen += os.read(ours, 1024)
    os.write(ours, CANARY.encode() + b"\n")
    out, _ = child.communicate(timeout=60)
    while True:
        try:
            data = os.read(ours, 1024)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(ours)

    assert (0, b"Kept KEY in secrets.toml.\n") == (child.returncode, out)
    assert CANARY.encode() not in seen
    assert CANARY in (kt.state / "secrets.toml").read_text()


@pytest.mark.parametrize(
    ("words", "data", "code", "says"),
    [
        (("set", "KEY", CANARY), b"", 2, "got a value on the command line"),
        (("set", "KEY"), b"", 2, "got nothing"),
        (("set", "KEY"), b"\n", 2, "got nothing"),
        (("set", "KEY"), f"{CANARY}\nmore\n".encode(), 2, "2 lines"),
        (("set", "KEY"), f"{CANARY}\0".encode(), 2, "NUL"),
        (("set", "KEY"), CANARY.encode() + b"\xff", 2, "no UTF-8"),
        (("set", "KEY"), CANARY.encode() * 80_000, 2, "at most 65536"),
        (("set", "K=Y"), CANARY.encode(), 2, "'='"),
        (("rm", "KEY"), b"", 3, "no secret KEY in secrets.toml"),
    ],
)
def test_each_refusal_has_its_code_and_a_sentence_and_shows_no_value(
    kt: Any, words: tuple[str, ...], data: bytes, code: int, says: str
) -> None:
    done = piped(kt, *words, data=data)

    assert (code, b"") == (done.returncode, done.stdout)
    assert says in done.stderr.decode()
    assert CANARY.encode() not in done.stdout + done.stderr
    assert not (kt.state / "secrets.toml").exists()


def test_a_file_that_lets_others_in_is_refused_by_every_verb(kt: Any) -> None:
    piped(kt, "set", "KEY")
    (kt.state / "secrets.toml").chmod(0o644)

    for words in (("set", "OTHER"), ("list",), ("rm", "KEY")):
        done = piped(kt, *words)

        assert 1 == done.returncode
        assert f"chmod 600 {kt.state}/secrets.toml" in done.stderr.decode()
        assert CANARY.encode() not in done.stdout + done.stderr


def test_the_list_names_places_and_the_removal_forgets(kt: Any) -> None:
    piped(kt, "set", "KEY")
    listed = piped(kt, "list", KEY="x")
    removed = piped(kt, "rm", "KEY")
    empty = piped(kt, "list")

    assert "environment (wins: the values differ), secrets.toml" in listed.stdout.decode()
    assert (0, b"Removed KEY from secrets.toml.\n", b"") == (
        removed.returncode,
        removed.stdout,
        removed.stderr,
    )
    assert b"There are no secrets, and no agent refers to one.\n" == empty.stdout
    assert CANARY.encode() not in listed.stdout + removed.stdout


def test_a_variable_of_this_shell_that_wins_over_what_is_kept_is_told(kt: Any) -> None:
    other = piped(kt, "set", "KEY", KEY="old-canary")
    same = piped(kt, "set", "KEY", KEY=CANARY)
    listed = json.loads(piped(kt, "list", "--json", KEY=CANARY).stdout)["secrets"]

    assert b"the variable KEY of this shell has another value, which wins" in other.stderr
    assert b"unset KEY" in other.stderr
    assert b"canary" not in other.stderr + other.stdout
    assert b"" == same.stderr
    assert [("environment", False)] == [(one["wins"], one["differ"]) for one in listed]


def test_who_takes_the_value_at_its_next_start_is_told(kt: Any) -> None:
    home = kt.state / "agents" / "mine"
    home.mkdir(parents=True)
    (home / "config.toml").write_text('agent.A = "secret:KEY"\n')
    (kt.state / "config.toml").write_text('agent.B = "x ${secret:KEY}"\n')

    done = piped(kt, "set", "KEY")

    assert b"mine: at its next start.\n" in done.stdout
    assert b"all other agents (it is set for all of them): at their next start.\n" in done.stdout


def test_the_keyring_is_written_where_that_is_asked_for(kt: Any, tmp_path: Any) -> None:
    backends = Path(__file__).parents[2] / "manifest" / "configuration"
    chosen = {
        "PYTHON_KEYRING_BACKEND": "file_keyring.FileKeyring",
        "KT_TEST_KEYRING": str(tmp_path / "keyring.json"),
        "PYTHONPATH": f"{backends}:{os.environ.get('PYTHONPATH', '')}",
    }

    kept = piped(kt, "set", "KEY", "--keyring", **chosen)
    held = json.loads((tmp_path / "keyring.json").read_text())
    removed = piped(kt, "rm", "KEY", "--keyring", **chosen)
    again = piped(kt, "rm", "KEY", "--keyring", **chosen)

    assert (0, b"Kept KEY in the keyring.\n") == (kept.returncode, kept.stdout)
    assert {"ktmeter/KEY": CANARY} == held
    assert (0, 3) == (removed.returncode, again.returncode)
    assert not (kt.state / "secrets.toml").exists()
