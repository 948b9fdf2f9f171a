"""Regular expressions whose match time is linear in the text, whatever the pattern: for lines that an agent prints.

Python's `re` goes back and tries again: `(a+)+$` over thirty characters takes longer than anybody waits, and an agent
chooses the text. RE2 does not, and refuses what would need it (back-references, looking around); its syntax is
otherwise that of `re` (https://github.com/google/re2/wiki/Syntax).
"""

import re2

LONGEST_PATTERN = 500
MEMORY_BYTES = 1 << 20
"""What a compiled pattern and its matching may use; a pattern that needs more is refused."""


class PatternRefused(Exception):
    """The text is no pattern, or one whose match time has no bound; the argument says why."""


class LinePattern:
    """A pattern, ready to be looked for."""

    def __init__(self, text: str) -> None:
        """Compile.

        Raises:
            PatternRefused.
        """
        if len(text) > LONGEST_PATTERN:
            raise PatternRefused(f"a pattern of {len(text)} characters, more than {LONGEST_PATTERN}")
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = MEMORY_BYTES
        self.text = text
        try:
            self._pattern = re2.compile(text, options)
        except re2.error as error:
            raise PatternRefused(_told(error)) from error
        except UnicodeEncodeError as error:
            raise PatternRefused("a pattern that is no Unicode text") from error

    def found_in(self, line: str) -> bool:
        """Tell whether the pattern is anywhere in the line."""
        return self._pattern.search(line) is not None


class GroupPattern:
    """A pattern with exactly one group, whose text is what is wanted."""

    def __init__(self, text: str) -> None:
        """Compile.

        Raises:
            PatternRefused: as for a `LinePattern`, or it has no group, or more than one.
        """
        LinePattern(text)
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MEMORY_BYTES
        self.text = text
        self._pattern = re2.compile(text, options)
        if self._pattern.groups != 1:
            raise PatternRefused(f"a pattern with {self._pattern.groups} groups, not one")

    def taken_from(self, text: str) -> str | None:
        """Return what the group has in the first place that fits; None where none does, or the group is empty."""
        found = self._pattern.search(text)
        return (found.group(1) or None) if found else None


def _told(error: Exception) -> str:
    said = error.args[0] if error.args else "no pattern"
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
