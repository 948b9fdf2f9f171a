"""A text in somebody's editor: written to a file that only they can read, and read back."""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from kt_cli import environment
from kt_ledger import exit_codes


class EditorFailed(Exception):
    """The editor could not be run, or ended with a failure."""

    exit_code = exit_codes.FAILED


class NoTerminal(Exception):
    """There is no terminal in which to edit."""

    exit_code = exit_codes.USAGE

    def __init__(self, instead: str) -> None:
        super().__init__(f"cannot edit: got no terminal, wanted one for an editor; {instead} changes one key")


def check_terminal(*, instead: str) -> None:
    """Raise NoTerminal, with what to use instead, where nobody can edit."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NoTerminal(instead)


def keep(text: str, *, name: str) -> Path:
    """Write a text that was refused to a file that only its author can read, and return where that is."""
    descriptor, path = tempfile.mkstemp(prefix="kt-refused-", suffix=f"-{name}")
    with open(descriptor, "wb") as file:
        file.write(text.encode())
    return Path(path)


def edit(text: str, *, name: str) -> str:
    """Return the text once the editor has ended; `name` is what it calls the file.

    Raises:
        EditorFailed: it cannot be run, or failed, or what it left is no UTF-8.
    """
    command = environment.editor()
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise EditorFailed(
            f"cannot edit: got the editor {command!r} ({error}); set VISUAL or EDITOR"
        ) from error
    with tempfile.TemporaryDirectory(prefix="kt-edit-") as folder:
        file = Path(folder) / name
        file.touch(mode=0o600)
        file.write_bytes(text.encode())
        try:
            code = subprocess.call([*words, str(file)])
        except OSError as error:
            raise EditorFailed(
                f"cannot edit: got the editor {command!r}, which cannot be run ({error.strerror}); set VISUAL or EDITOR"
            ) from error
        if code:
            raise EditorFailed(f"not changed: got {code} from the editor {command!r}, wanted 0")
        try:
            return file.read_bytes().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise EditorFailed(f"not changed: got a file that cannot be read back ({error})") from error
