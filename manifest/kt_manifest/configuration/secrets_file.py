"""`secrets.toml` in the state directory: `NAME = "value"`, 0600, ours; read with suspicion, written under the lock.

Laws: a value is in no message; what is written is one atomic replacement, comments and order kept, compared with what
was intended before it takes place; a file that lets others in is neither used nor repaired behind its owner's back.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kt_manifest import exit_codes, replacing, toml_edit, toml_text, words
from kt_manifest.configuration import secret_syntax

LIMIT_BYTES = 64 << 10
"""The longest value that is written: half of what one environment variable can carry (execve(2), MAX_ARG_STRLEN)."""


CORRECT = "correct it by hand"


class SecretsFileUnusable(Exception):
    """The file of secrets is not one that may be used, or cannot be read or written."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: Path, got: str, *, do: str) -> None:
        self.path = path
        self.got = got
        self.wanted = "a TOML file of texts, mode 0600 and yours"
        self.do = do
        super().__init__(f"{words.shown_path(path)} is not used: got {got}, wanted {self.wanted}; {self.do}")


class SecretInvalid(Exception):
    """A name that cannot name a secret, or a value that cannot be one; the value is not told."""

    exit_code = exit_codes.USAGE

    def __init__(self, got: str, *, wanted: str, do: str) -> None:
        self.got = got
        self.wanted = wanted
        self.do = do
        super().__init__(f"invalid secret: got {got}, wanted {wanted}; {do}")


def read(path: Path) -> Mapping[str, object] | str:
    """Return the document, or why there is none that may be used, as a phrase without anything of its content.

    A file that is not there holds nothing.
    """
    try:
        return toml_text.parse(_text(path))
    except FileNotFoundError:
        return {}
    except toml_text.NotToml as error:
        return f"{path.name} is not used: got {_malformed(error)}"
    except SecretsFileUnusable as error:
        return f"{path.name} is not used: got {error.got}; {error.do}"


def entries(path: Path) -> dict[str, str | None]:
    """Return what the file holds by name, in its order: a text, or None where it is no text, or empty.

    Raises:
        SecretsFileUnusable: it may not be used. A file that is not there holds nothing.
    """
    try:
        found = toml_text.parse(_text(path))
    except FileNotFoundError:
        return {}
    except toml_text.NotToml as error:
        raise SecretsFileUnusable(path, _malformed(error), do=CORRECT) from None
    return {name: value if isinstance(value, str) and value else None for name, value in found.items()}


def check_name(name: str) -> None:
    """Raise SecretInvalid where this cannot be the name of a secret."""
    if fault := secret_syntax.fault_in_name(name):
        raise SecretInvalid(
            fault, wanted="a name such as OPENAI_API_KEY", do="settings refer to it as secret:NAME"
        )


def check_value(name: str, value: str) -> None:
    """Raise SecretInvalid where this cannot be kept as the value of `name`; the value is not told."""
    by_hand = f'write it into secrets.toml by hand: {words.shown(name)[1:-1]} = """..."""'
    if not value:
        raise SecretInvalid(
            "nothing", wanted="a value", do="an empty secret is none; `kt secret rm` removes one"
        )
    if fault := words.fault_in_value(value):
        raise SecretInvalid(
            f"a value with {fault}", wanted="text", do="give the key as its provider shows it"
        )
    if "\n" in value or "\r" in value:
        raise SecretInvalid(f"a value of {len(value.splitlines())} lines", wanted="one line", do=by_hand)
    if (size := len(value.encode())) > LIMIT_BYTES:
        raise SecretInvalid(
            f"a value of {size} bytes",
            wanted=f"one of at most {LIMIT_BYTES}",
            do="keep it in a file of its own, and give the agent its path",
        )


def set(path: Path, name: str, value: str, *, timeout_s: float = replacing.LOCK_TIMEOUT_S) -> bool:
    """Keep a value; tell whether there was another one. The file is made with mode 0600; its folder must be there.

    Raises:
        SecretInvalid, SecretsFileUnusable: nothing has changed.
    """
    check_name(name)
    check_value(name, value)
    replaced = False

    def edit(document: Any) -> None:
        nonlocal replaced
        if isinstance(document.get(name), dict | list):
            raise SecretsFileUnusable(
                path,
                f"a table or an array at {words.shown(name)}",
                do="remove it by hand, or choose another name",
            )
        replaced = name in document
        document[name] = value

    _edit(path, edit, timeout_s)
    return replaced


def remove(path: Path, name: str, *, timeout_s: float = replacing.LOCK_TIMEOUT_S) -> bool:
    """Forget a value; tell whether there was one. Raises SecretsFileUnusable."""
    if name not in entries(path):
        return False
    removed = False

    def edit(document: Any) -> None:
        nonlocal removed
        removed = name in document  # another writer may have been quicker
        document.pop(name, None)

    _edit(path, edit, timeout_s)
    return removed


def _edit(path: Path, edit: Callable[[Any], None], timeout_s: float) -> None:
    with _translated(path), replacing.locked(path.parent, timeout_s=timeout_s) as folder:
        if path.is_symlink():
            raise SecretsFileUnusable(
                path, "a symbolic link", do="edit what it leads to, or put that in its place"
            )
        try:
            text = _text(path)
        except FileNotFoundError:
            text = ""
        wanted = dict(toml_text.parse(text))
        edit(wanted)
        try:
            edited = toml_edit.edited(text, edit, correct=lambda new: toml_text.parse(new) == wanted)
        except toml_edit.NotEditable:
            got = "a layout that cannot be edited in place"
            raise SecretsFileUnusable(path, got, do="edit it by hand") from None
        except toml_edit.NoRoom:
            got = f"no room: it would be more than {toml_text.LIMIT_BYTES >> 10} KiB"
            raise SecretsFileUnusable(
                path, got, do="remove what is no longer used: `kt secret list`"
            ) from None
        if edited != text:
            replacing.replace_at(folder, path.name, edited.encode())


def _text(path: Path) -> str:
    """Return the file's text. Raises FileNotFoundError, NotToml where it is no UTF-8, SecretsFileUnusable."""
    try:
        with toml_text.opened(path) as descriptor:
            _refuse_strangers(path, os.fstat(descriptor))
            return toml_text.decode(toml_text.read(descriptor))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        got = f"one that cannot be read: {getattr(error, 'strerror', None) or error}"
        raise SecretsFileUnusable(path, got, do="put a file in its place") from error


def _malformed(error: toml_text.NotToml) -> str:
    return f"text that is not valid TOML (line {error.line})"  # its reason could quote what is in that line


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except toml_text.NotToml as error:
        raise SecretsFileUnusable(path, _malformed(error), do=CORRECT) from None
    except replacing.Locked as error:
        raise SecretsFileUnusable(
            path, f"one {error}", do="try again once the other writer is done"
        ) from error
    except (OSError, ValueError) as error:
        got = getattr(error, "strerror", None) or str(error)
        raise SecretsFileUnusable(path, got, do="check the file, its folder and the free space") from error


def _refuse_strangers(path: Path, status: os.stat_result) -> None:
    if not hasattr(os, "geteuid"):
        return  # Windows: neither owners nor modes of this sort
    shown = words.shown_path(path)
    # A symbolic link is followed; what counts is whose file it leads to, and that is the open descriptor's.
    if status.st_uid != os.geteuid():
        raise SecretsFileUnusable(path, "one that belongs to another user", do=f"chown $USER {shown}")
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        got = f"one of mode {stat.S_IMODE(status.st_mode):04o}, which lets others in"
        raise SecretsFileUnusable(
            path, got, do=f"treat what is in it as known to others, then chmod 600 {shown}"
        )
