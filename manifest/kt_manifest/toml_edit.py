"""One edit of a TOML file in place: comments and order kept, the outcome read back before it takes the file's place.

For texts that `toml_text` has accepted. What went wrong is never told in words of the text: it may hold secrets.
"""

from collections.abc import Callable
from typing import Any

from kt_manifest import toml_text


class NotEditable(Exception):
    """The layout cannot be edited without changing something else."""


class NoRoom(Exception):
    """The edited text would be larger than what is read again; `size_bytes` is how large."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        super().__init__(f"{size_bytes} bytes, more than {toml_text.LIMIT_BYTES}")


def edited(text: str, change: Callable[[Any], None], *, correct: Callable[[str], bool]) -> str:
    """Return the text after `change` was made to its document.

    Args:
        correct: whether a text says what was intended; what it raises of `toml_text.NotToml` and of this module's own
            is a no. Refusals of the caller's, raised by `change`, pass.

    Raises:
        NotEditable, NoRoom.
    """
    import tomlkit  # late: most of those who read such a file never write one

    try:
        document = tomlkit.parse(text)
        change(document)
        outcome = tomlkit.dumps(document)
        if (size := len(outcome.encode())) > toml_text.LIMIT_BYTES:
            raise NoRoom(size)
        if correct(outcome):
            return outcome
    except (tomlkit.exceptions.TOMLKitError, toml_text.NotToml, KeyError, TypeError):
        pass  # what went wrong could quote a value
    raise NotEditable
