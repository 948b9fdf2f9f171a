"""What may reach a screen: colour only where it is wanted, and never a control character that came from elsewhere."""

import re
import sys
import unicodedata

from kt_cli import environment

DEFAULT_WIDTH = 80
NARROWEST = 40
UNBOUNDED = 1 << 40
_COLOURS = {"green": "32", "yellow": "33", "red": "31", "dim": "2", "bold": "1"}
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
# ECMA-48 control sequences, then OSC and other strings up to their end, then two-byte escapes.
_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?$")
_LONGEST_ESCAPE = 4096
# Marks that turn the direction of text around: "Trojan source", CVE-2021-42574.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def width() -> int:
    """Return the columns that a result may use: what `COLUMNS` says, else the terminal's, else as many as it takes.

    What goes into a pipe or a file is read by programs, for which one line is one thing.
    """
    asked = environment.columns()
    if asked is None and not is_terminal():
        return UNBOUNDED
    if asked is None:
        import shutil

        asked = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return max(asked or DEFAULT_WIDTH, NARROWEST)


def coloured(text: str, colour: str) -> str:
    """Return `text` in a colour of ours where standard output is a terminal that wants it."""
    if not colour or not is_terminal() or not environment.colour_wanted():
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def visible(text: str) -> str:
    """Return `text` with every control character written out, on one line: safe in a table."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char in _TURNING or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
        return char.encode("unicode_escape", "surrogatepass").decode()
    return char


def log_line(text: str, *, colour: bool) -> str:
    """Return an agent's line as a terminal may get it: colours kept where wanted, all other controls dropped."""
    if text.isascii() and text.isprintable():
        return text
    kept = "".join(_pieces(text, colour))
    return f"{kept}\x1b[0m" if colour and _SGR.search(kept) else kept


def stream(text: str, *, colour: bool) -> str:
    """Return a stretch of an agent's output as a terminal may get it: as `log_line`, but lines stay lines."""
    kept = [piece for line in re.split(r"(\r?\n|\r)", text) for piece in _of_a_stream(line, colour)]
    return "".join(kept)


def _of_a_stream(piece: str, colour: bool) -> list[str]:
    return [piece] if piece in ("\n", "\r\n", "\r") else _pieces(piece, colour)


def split_escape(text: str) -> tuple[str, str]:
    """Return `text` up to an escape sequence that is not whole yet, and the rest; a rest without end is given up."""
    found = _UNFINISHED.search(text)
    if found is None or len(found.group()) > _LONGEST_ESCAPE:
        return text, ""
    return text[: found.start()], found.group()


def _pieces(text: str, colour: bool) -> list[str]:
    pieces, at = [], 0
    for found in _ESCAPE.finditer(text):
        pieces.append(_without_controls(text[at : found.start()]))
        if colour and _SGR.fullmatch(found.group()):
            pieces.append(found.group())
        at = found.end()
    pieces.append(_without_controls(text[at:]))
    return pieces


def _without_controls(text: str) -> str:
    return "".join(char for char in text if char == "\t" or (char not in _TURNING and not _is_control(char)))


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")


def columns(text: str) -> int:
    """Return how many columns `text` takes on a screen."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
