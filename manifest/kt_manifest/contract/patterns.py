r"""The rules of the manifest that a regular expression can say, for the schema that editors read.

Judging does not use these: `words`, `names`, `native_path` and `snapshot` do that, with a reason in words. A test
compares the two. The dialect is the common part of ECMA 262 (JSON Schema, "Regular Expressions") and Python; each is
for a whole text, hence `^` and `$`.
"""

import re
from collections.abc import Iterable

from kt_manifest import home_names

KIND = r"^[a-z0-9][a-z0-9_-]*$"
"""`names.PATTERN`."""

_SPACE = r"[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"

CONTRACT_VERSION = (
    rf"^{_SPACE}*1\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?" + rf"{_SPACE}*$"
)
"""A semantic version (semver.org, 2.0.0) of the major that this engine speaks."""

PROGRAM = r"^(?!\s*$)(?!\.{1,2}$)([^/\\\u0000]+|(/|\\\\|[A-Za-z]:[/\\])[^\u0000]*)$"
"""`snapshot.fault_in_exec`: a bare name, or an absolute path of either sort of system."""

CARRIED = r"^[^\u0000]*$"
"""`words.fault_in_value`."""

FLAG = r"^[^\u0000]+$"
"""A flag: not empty."""

VARIABLE_NAME = r"^[^=\s\u0000-\u001f\u007f-\u009f]+$"
"""`words.fault_in_environment_name`."""

SHOWN_NAME = r"^[^\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*$"
"""`words.fault_in_shown_name`."""

NATIVE_KEY = (
    r"^[^.\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
    r"(\.[^.\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+)*$"
)
"""A dotted key without an empty segment."""


def _in_any_case(names: Iterable[str]) -> str:
    """Return a pattern for each way of writing a name that a file system without case may take for it."""
    spelled = []
    for name in names:
        chars = [
            f"[{char}{char.upper()}{_FOLDED.get(char, '')}]" if char.isalpha() else re.escape(char)
            for char in name
        ]
        text = "".join(chars)
        for pair, ligature in _LIGATURES.items():
            there = "".join(f"[{char}{char.upper()}]" for char in pair)
            text = text.replace(there, f"({there}|{ligature})")
        spelled.append(text)
    return "|".join(spelled)


# What `str.casefold` makes an ASCII letter, or two, of (Unicode 15, CaseFolding.txt), of the letters in our names.
_FOLDED = {"k": r"\u212a", "s": r"\u017f"}
_LIGATURES = {"ff": r"\ufb00", "fi": r"\ufb01"}

HOME_PATH = (
    rf"^(?![A-Za-z]:)(?!({_in_any_case(home_names.TABLE)})([/\\]|$))"
    rf"(?!.*[/\\]({_in_any_case(sorted(home_names.EVERYWHERE))})([/\\]|$))"
    r"(?!\.{1,2}([/\\]|$))[^/\\\u0000-\u001f\u007f-\u009f]+([/\\](?!\.{1,2}([/\\]|$))[^/\\\u0000-\u001f\u007f-\u009f]+)*$"
)
"""`native_path.fault`: relative, both slashes, no drive, no empty, `.` or `..` segment, none of our own files."""

PORT_VARIABLE = r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"
"""`readiness.VARIABLE`."""

LOOPBACK_URL = r"^[Hh][Tt][Tt][Pp]://[^@/?\s#]+:[0-9]+([/?][^\s#]*)?$"
"""`[kt.send] url`: plain http with a port; that it is this machine's, a pattern says badly."""

URL_WITH_VARIABLES = r"^[Hh][Tt][Tt][Pp]://[^\s]+$"
"""`[kt.ready] http`: where a variable may stand for any part, this is all that is certain."""
