"""A small table writer: plain columns that fit the width that there is.

Too wide a table gives way column by column: the widest wraps first, at spaces where it can, inside words where it must.
Nothing is cut off, and nothing here imports more than the screen rules.
"""

from collections.abc import Sequence
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
    plain = [list(titles)] + [[cell.text for cell in row] for row in cells]
    widths = _fit([max(map(terminal.columns, column)) for column in zip(*plain, strict=True)], width)
    lines = _lines([Cell(title, "bold") for title in titles], widths)
    lines.append(GAP.join("─" * size for size in widths))
    for row in cells:
        lines += _lines(row, widths)
    return "\n".join(lines)


def fields(rows: Sequence[tuple[str, str | Cell]], *, width: int) -> str:
    """Return two columns, name and value, without titles."""
    name_width = max(terminal.columns(name) for name, _ in rows)
    widths = [name_width, max(width - name_width - len(GAP), NARROWEST)]
    lines: list[str] = []
    for name, value in rows:
        lines += _lines([Cell(name), _cell(value)], widths)
    return "\n".join(lines)


def _cell(entry: str | Cell) -> Cell:
    cell = entry if isinstance(entry, Cell) else Cell(entry)
    return Cell(terminal.visible(cell.text), cell.colour)


def _fit(widths: list[int], limit: int) -> list[int]:
    over = sum(widths) + len(GAP) * (len(widths) - 1) - limit
    while over > 0 and max(widths) > NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] -= 1
        over -= 1
    return widths


def _lines(row: Sequence[Cell], widths: Sequence[int]) -> list[str]:
    wrapped = [wrap(cell.text, size) for cell, size in zip(row, widths, strict=True)]
    lines = []
    for number in range(max(map(len, wrapped))):
        parts = []
        for cell, texts, size in zip(row, wrapped, widths, strict=True):
            text = texts[number] if number < len(texts) else ""
            padding = " " * (size - terminal.columns(text))
            parts.append((terminal.coloured(text, cell.colour) if text else "") + padding)
        lines.append(GAP.join(parts).rstrip())
    return lines


def wrap(text: str, size: int) -> list[str]:
    """Return `text` in lines of at most `size` columns; words that are longer are broken."""
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if terminal.columns(joined) <= size:
            line = joined
            continue
        if line:
            lines.append(line)
        *full, line = _broken(word, size)
        lines += full
    return [*lines, line]


def _broken(word: str, size: int) -> list[str]:
    pieces, piece = [], ""
    for char in word:
        if piece and terminal.columns(piece + char) > size:
            pieces.append(piece)
            piece = ""
        piece += char
    return [*pieces, piece]
