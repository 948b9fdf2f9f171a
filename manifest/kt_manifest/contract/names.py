"""The rule for the names of agent instances."""

import re

from kt_manifest import exit_codes, words

MAX_CHARS = (
    64  # a folder in the state directory and a column in a table; systemd allows units 255, Docker no limit
)
PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]*", re.ASCII)


class NameInvalid(Exception):
    """The name of an agent instance does not follow the rule."""

    exit_code = exit_codes.USAGE

    def __init__(self, got: str) -> None:
        self.got = got
        self.wanted = (
            f"1 to {MAX_CHARS} characters of a-z, 0-9, '_' and '-', beginning with a letter or digit"
        )
        self.do = "choose another name"
        super().__init__(f"invalid agent name: got {words.shown(got)}, wanted {self.wanted}; {self.do}")


def check(name: str) -> str:
    """Return `name` when it may name an instance.

    Raises:
        NameInvalid: it does not match `^[a-z0-9][a-z0-9_-]*$` as a whole (a final newline included), or is longer
            than 64 characters.
    """
    if len(name) > MAX_CHARS or not follows_the_pattern(name):
        raise NameInvalid(name)
    return name


def follows_the_pattern(name: str) -> bool:
    """Tell whether the whole of `name` is made of the permitted characters, whatever its length."""
    # fullmatch, since `$` also matches before a final newline.
    return PATTERN.fullmatch(name) is not None
