"""A small table writer: plain columns that fit the width that there is.

Too wide a table gives way column by column: the widest wraps first, at spaces where it can, inside words where it must.
Nothing is cut off, and nothing here imports more than the screen rules.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kt_cli import terminal

GAP = "  "
NARROWEST = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one cell, and its colour (`terminal.coloured`) where there is one."""

    text: str
    colour: str = ""


def render(titles: Sequence[str], rows: Sequence[Sequence[str | Cell]], *, width: int) -> str:
    """Return a table of at most `width` columns (or five a column, whichever is more), without a final newline."""
    cells = [[_cell(entry) for entry in row] for row in rows]
    columns = [list(column) for column in zip(*([Cell(title) for title in titles], *cells), strict=True)]
    widths = _fit(columns, width)
    numeric = [_is_numeric([cell.text for cell in column[1:]]) for column in columns]
    lines = _lines([Cell(title, "bold") for title in titles], widths, numeric)
    lines.append(GAP.join("─" * size for size in widths))
    for row in cells:
        lines += _lines(row, widths, numeric)
    return "\n".join(lines)


def fields(rows: Sequence[tuple[str, str | Cell]], *, width: int) -> str:
    """Return two columns, name and value, without titles."""
    name_width = max(terminal.columns(name) for name, _ in rows)
    widest = _widest(_cell(value).text for _, value in rows)
    widths = [name_width, max(min(width - name_width - len(GAP), widest), NARROWEST)]
    lines: list[str] = []
    for name, value in rows:
        lines += _lines([Cell(name), _cell(value)], widths, (False, False))
    return "\n".join(lines)


def _cell(entry: str | Cell) -> Cell:
    cell = entry if isinstance(entry, Cell) else Cell(entry)
    return Cell(terminal.visible(cell.text), cell.colour)


def _is_numeric(texts: Sequence[str]) -> bool:
    return bool(texts) and all(text.replace(",", "").isdecimal() or text == "—" for text in texts)


def _fit(columns: Sequence[Sequence[Cell]], limit: int) -> list[int]:
    """Return a width a column: wrap titles first, then cells where a line may break, then break words; widest first."""
    widths = [_widest(cell.text for cell in column) for column in columns]
    words = [_widest(_pieces(column)) for column in columns]
    titles = [_widest([*_pieces(column[:1]), *(cell.text for cell in column[1:])]) for column in columns]
    for floors in (titles, words, [NARROWEST] * len(widths)):
        while sum(widths) + len(GAP) * (len(widths) - 1) > limit:
            room = [size if size > floor else 0 for size, floor in zip(widths, floors, strict=True)]
            if not max(room):
                break
            widths[room.index(max(room))] -= 1
    return widths


def _widest(texts: Iterable[str]) -> int:
    return max(map(terminal.columns, texts))


def _pieces(column: Sequence[Cell]) -> list[str]:
    return [piece.strip() for cell in column for piece in _BREAK.split(cell.text)]


def _lines(row: Sequence[Cell], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    wrapped = [wrap(cell.text, size) for cell, size in zip(row, widths, strict=True)]
    lines = []
    for number in range(max(map(len, wrapped))):
        parts = []
        for cell, texts, size, right in zip(row, wrapped, widths, numeric, strict=True):
            text = texts[number] if number < len(texts) else ""
            padding = " " * (size - terminal.columns(text))
            shown = terminal.coloured(text, cell.colour) if text else ""
            parts.append(padding + shown if right else shown + padding)
        lines.append(GAP.join(parts).rstrip())
    return lines


_BREAK = re.compile(r"(?<= )(?! )|(?<=/)(?<!//)(?=[^ /])")
"""Where a line may break: before a word, and inside a path or an address between whole segments."""
_WORD = re.compile(r"(?<= )(?! )")


def sentence(text: str, size: int) -> list[str]:
    """Return `text` in lines of at most `size` columns, but for longer words, which stay whole, to be copied."""
    lines, line = [], ""
    for word in _WORD.split(text):
        if line and terminal.columns((line + word).rstrip()) > size:
            lines.append(line.rstrip())
            line = ""
        line += word
    return [*lines, line.rstrip()]


def wrap(text: str, size: int) -> list[str]:
    """Return `text` in lines of at most `size` columns; words that are longer are broken."""
    lines, line = [], ""
    for piece in _BREAK.split(text):
        if terminal.columns((line + piece).rstrip()) <= size:
            line += piece
            continue
        if line:
            lines.append(line.rstrip())
        *full, line = _broken(piece, size)
        lines += full
    return [*lines, line.rstrip()]


def _broken(word: str, size: int) -> list[str]:
    pieces, piece = [], ""
    for char in word:
        if piece and terminal.columns((piece + char).rstrip()) > size:
            pieces.append(piece)
            piece = ""
        piece += char
    return [*pieces, piece]
