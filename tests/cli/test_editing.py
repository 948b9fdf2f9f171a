"""Editing settings as a whole: a real terminal, a real engine, and an editor that types what a test says."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EDITOR = """
import json, os, stat, sys
file, script = sys.argv[2], sys.argv[1]
turns = json.load(open(script))
seen = open(file).read()
assert stat.S_IMODE(os.stat(file).st_mode) == 0o600 and stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode) == 0o700
turn = turns["turns"].pop(0)
turns["seen"].append([os.path.basename(file), seen])
json.dump(turns, open(script, "w"))
if turn is not None:
    open(file, "w").write(turn)
for path, text in turns["meanwhile"].items():
    open(path, "w").write(text)
sys.exit(turns["code"])
"""


class Terminal:
    """A person who edits: their keyboard, their screen and their editor."""

    def __init__(self, kt: Any, folder: Path) -> None:
        self._kt = kt
        self._script = folder / "turns.json"
        self._editor = folder / "editor.py"
        self._editor.write_text(EDITOR)

    def edit(
        self,
        *words: str,
        turns: list[str | None],
        typed: str = "",
        code: int = 0,
        editor: str | None = None,
        meanwhile: dict[str, str] | None = None,
    ) -> tuple[int, str, str]:
        """Return exit code, screen and notes of `config edit`."""
        facts = {"turns": turns, "seen": [], "code": code, "meanwhile": meanwhile or {}}
        self._script.write_text(json.dumps(facts))
        master, slave = pty.openpty()
        chosen = editor if editor is not None else f"{sys.executable} {self._editor} {self._script}"
        process = subprocess.Popen(
            self._kt.command(*words),
            stdin=slave,
            stdout=slave,
            stderr=subprocess.PIPE,
            text=True,
            env=self._kt.environment(EDITOR="false", VISUAL=chosen),
        )
        os.close(slave)
        os.write(master, typed.encode())
        _, notes = process.communicate(timeout=60)
        screen = os.read(master, 65536).decode() if process.returncode != 2 or typed else ""
        os.close(master)
        return process.returncode, screen.replace("\r\n", "\n"), notes

    @property
    def seen(self) -> list[list[str]]:
        """The file's name and its text, at each opening of the editor."""
        found: list[list[str]] = json.loads(self._script.read_text())["seen"]
        return found


@pytest.fixture
def terminal(shared_kt: Any, tmp_path: Path) -> Any:
    shared_kt("agent", "register", "bot", "--kind", "command", "--", "true")
    yield Terminal(shared_kt, tmp_path)
    (shared_kt.state / "config.toml").unlink(missing_ok=True)


def _file(kt: Any) -> Path:
    return Path(kt.state) / "agents" / "bot" / "config.toml"


def test_what_was_edited_takes_the_place_of_what_was_there(terminal: Terminal, shared_kt: Any) -> None:
    code, screen, _ = terminal.edit("agent", "config", "edit", "bot", turns=['# mine\nmodel = "a"\n'])

    assert (0, True) == (code, "Changed: model." in screen)
    assert '# mine\nmodel = "a"\n' == _file(shared_kt).read_text()
    [[name, text]] = terminal.seen
    assert ("bot.toml", True) == (name, text.startswith("# KEY = value"))


def test_for_all_agents_the_fleets_file_is_edited(terminal: Terminal, shared_kt: Any) -> None:
    code, screen, _ = terminal.edit("config", "edit", turns=['restart.policy = "never"\n'])

    assert (0, True) == (code, "Changed: restart.policy." in screen)
    assert "never\n" == shared_kt("agent", "config", "get", "bot", "restart.policy").out


def test_an_edit_that_changes_nothing_writes_nothing(terminal: Terminal, shared_kt: Any) -> None:
    code, screen, _ = terminal.edit("agent", "config", "edit", "bot", turns=[None])

    assert (0, True, False) == (code, "Nothing was changed." in screen, _file(shared_kt).exists())


def test_a_mistake_can_be_corrected_where_it_was_made(terminal: Terminal, shared_kt: Any) -> None:
    code, _, notes = terminal.edit(
        "agent", "config", "edit", "bot", turns=['modle = "a"\n', 'model = "a"\n'], typed="y\n"
    )

    assert 0 == code
    assert "did you mean model?" in notes
    assert "Edit it again?" in notes
    assert 'modle = "a"\n' == terminal.seen[1][1]
    assert 'model = "a"\n' == _file(shared_kt).read_text()


def test_a_mistake_that_is_given_up_leaves_the_file_as_it_was(terminal: Terminal, shared_kt: Any) -> None:
    shared_kt("agent", "config", "set", "bot", "model", "a")

    code, screen, notes = terminal.edit(
        "agent", "config", "edit", "bot", turns=["restart.limit = 0\n"], typed="n\n"
    )

    assert 2 == code
    assert "invalid value for restart.limit" in notes
    kept = Path(notes.rpartition("What you wrote is in ")[2].strip())
    assert ("restart.limit = 0\n", 0o600) == (kept.read_text(), kept.stat().st_mode & 0o777)
    kept.unlink()
    assert "Nothing was changed." in screen
    assert 'model = "a"\n' == _file(shared_kt).read_text()


def test_what_somebody_else_changed_meanwhile_is_told_before_it_is_replaced(
    terminal: Terminal, shared_kt: Any
) -> None:
    shared_kt("agent", "config", "set", "bot", "model", "a")
    theirs = {str(_file(shared_kt)): 'model = "theirs"\n'}

    code, _, notes = terminal.edit(
        "agent", "config", "edit", "bot", turns=['model = "mine"\n'], typed="n\n", meanwhile=theirs
    )

    assert 4 == code
    assert "another writer's change of model" in notes
    assert 'model = "theirs"\n' == _file(shared_kt).read_text()


@pytest.mark.parametrize(
    ("editor", "code", "says"),
    [
        ("/nonexistent/editor", 0, "set VISUAL or EDITOR"),
        ("editor 'unfinished", 0, "No closing quotation"),
        (None, 3, "got 3 from the editor"),
    ],
)
def test_an_editor_that_fails_changes_nothing(
    terminal: Terminal, shared_kt: Any, editor: str | None, code: int, says: str
) -> None:
    done, _, notes = terminal.edit(
        "agent", "config", "edit", "bot", turns=['model = "a"\n'], editor=editor, code=code, typed="\n"
    )

    assert 1 == done
    assert says in notes
    assert not _file(shared_kt).exists()
