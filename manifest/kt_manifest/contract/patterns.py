r"""The rules of the manifest that a regular expression can say, for the schema that editors read.

Judging does not use these: `words`, `names`, `native_path` and `snapshot` do that, with a reason in words. A test
compares the two. The dialect is the common part of ECMA 262 (JSON Schema, "Regular Expressions") and Python; each is
for a whole text, hence `^` and `$`.
"""

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

HOME_PATH = (
    r"^(?![A-Za-z]:)(?!([Cc][Oo][Nn][Ff][Ii][Gg]\.[Tt][Oo][Mm][Ll]|\.[Kk][Tt]\.[Nn][Ee][Ww])([/\\]|$))"
    r"(?!(.*[/\\])?\.[Kk][Tt]\.[Nn][Ee][Ww]$)"
    r"(?!\.{1,2}([/\\]|$))[^/\\\u0000-\u001f\u007f-\u009f]+([/\\](?!\.{1,2}([/\\]|$))[^/\\\u0000-\u001f\u007f-\u009f]+)*$"
)
"""`native_path.fault`: relative, both slashes, no drive, no empty, `.` or `..` segment, none of our own files."""

PORT_VARIABLE = r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"
"""`readiness.VARIABLE`."""

LOOPBACK_URL = r"^[Hh][Tt][Tt][Pp]://[^@/?\s#]+:[0-9]+([/?][^\s#]*)?$"
"""`[kt.send] url`: plain http with a port; that it is this machine's, a pattern says badly."""

URL_WITH_VARIABLES = r"^[Hh][Tt][Tt][Pp]://[^\s]+$"
"""`[kt.ready] http`: where a variable may stand for any part, this is all that is certain."""
