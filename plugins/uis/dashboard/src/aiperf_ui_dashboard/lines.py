"""Lines of a pane: text with style names, tables, bars and curves, and foreign text made harmless.

A line is a tuple of (text, style) pairs; the style is a name of :data:`STYLES`.  Lines are compared with the last ones, so
that only changed ones are drawn again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

Span = tuple[str, str]
Line = tuple[Span, ...]
Row = Sequence[Span]

STYLES = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "head": "bold cyan",
    "ok": "green",
    "warn": "yellow",
    "bad": "bold red",
    "key": "bold",
    "curve": "cyan",
}
"""Style names, and what they are for Rich: the terminal's own colours, on its own background."""

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_BLOCKS, _PLAIN_BLOCKS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"


def cells(text: str) -> int:
    """Cells that a terminal gives the text."""
    return len(text) if text.isascii() else cell_len(text)


def literal(text: str, most: int = 500) -> str:
    """Foreign text as it is, in one line of up to *most* characters.

    Characters that a terminal would obey (escapes, line ends, direction marks) become Python escapes such as ``\\x1b``.
    """
    cut = text[:most]
    if not (cut.isascii() and cut.isprintable()):
        cut = "".join(_escaped(character) for character in cut)
    return cut if len(text) <= most else f"{cut}…"


def _escaped(character: str) -> str:
    return ascii(character)[1:-1] if unicodedata.category(character) in _HIDDEN else character


def plain(line: Iterable[Span]) -> str:
    """The text of a line."""
    return "".join(text for text, _ in line)


def shortened(text: str, width: int) -> str:
    """The text in at most *width* cells, with ``…`` where it was cut."""
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += cells(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…" if width > 0 else ""


def fitted(line: Iterable[Span], width: int) -> Line:
    """The line in at most *width* cells."""
    spans: list[Span] = []
    for text, style in line:
        wide = cells(text)
        if wide > width:
            spans.append((shortened(text, width), style))
            break
        spans.append((text, style))
        width -= wide
    return tuple(spans)


def cut(line: Iterable[Span], width: int) -> Line:
    """:func:`fitted`, without work for a line that fits."""
    spans = tuple(line)
    return spans if sum(cells(text) for text, _ in spans) <= width else fitted(spans, width)


def folded(text: str, width: int, indent: str) -> list[str]:
    """The text in pieces of at most *width* cells, between words where it can be; *indent*: of those behind the first."""
    if cells(text) <= width:
        return [text]
    pieces, piece = [], ""
    for word in text.split(" "):
        if piece.strip() and cells(piece) + 1 + cells(word) > width:
            pieces.append(piece)
            piece = indent + word
        else:
            piece = f"{piece} {word}" if piece else word or " "
        while cells(piece) > width > len(indent) + 2:
            head = shortened(piece, width + 1)[:-1]
            pieces.append(head)
            piece = indent + piece[len(head) :]
    return [*pieces, piece]


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text in exactly *width* cells."""
    text = shortened(text, width)
    blank = " " * (width - cells(text))
    return blank + text if right else text + blank


def table(header: Sequence[str], rows: Sequence[Row], width: int, *, left: int = 1, first: int = 12) -> list[Line]:
    """A header and rows in columns, two blanks apart; the first *left* columns are aligned to the left.

    Columns that don't fit are left out, the last ones first, once the first column has shrunk to *first* cells.
    """
    count = len(header)
    widths = [max([cells(header[at]), *(cells(row[at][0]) for row in rows)]) for at in range(count)]
    while count > 1 and min(widths[0], first) + sum(widths[1:count]) + 2 * (count - 1) > width:
        count -= 1
    others = sum(widths[1:count]) + 2 * (count - 1)
    widths[0] = max(0, min(widths[0], width - others))
    titles = [(title, "dim") for title in header]
    return [_row(cells_of, widths[:count], left) for cells_of in (titles, *rows)]


def _row(row: Row, widths: Sequence[int], left: int) -> Line:
    spans: list[Span] = []
    for at, ((text, style), width) in enumerate(zip(row, widths, strict=False)):
        if at:
            spans.append(("  ", ""))
        spans.append((padded(text, width, right=at >= left), style))
    return tuple(spans)


def side_by_side(pairs: Sequence[tuple[str, Span]], width: int) -> list[Line]:
    """Labels and values: in two columns where nothing is cut then, else in one."""
    half = -(-len(pairs) // 2)
    for parts in ((pairs[:half], pairs[half:]), (pairs,)):
        labels = [max(cells(label) for label, _ in part) + 2 for part in parts]
        widths = [wide + max(cells(value) for _, (value, _) in part) for wide, part in zip(labels, parts, strict=True)]
        if sum(widths) + 2 <= width:
            break
    start = max(widths[0] + 2, (width + 2) // 2 if widths[-1] <= width // 2 else 0)
    lines: list[list[Span]] = [[] for _ in parts[0]]
    for column, part in enumerate(parts):
        for line, (label, (value, style)) in zip(lines, part, strict=False):
            line.append((padded(label, labels[column]), "dim"))
            line.append((padded(value, start - labels[0]) if not column and len(parts) > 1 else value, style))
    return [fitted(line, width) for line in lines]


def bar(share: float, width: int, *, unicode: bool) -> Line:
    """A bar that is filled to *share*, 0 to 1."""
    full = min(width, max(0, round(share * width)))
    on, off = ("━", "─") if unicode else ("#", "-")
    return ((on * full, "ok"), (off * (width - full), "dim"))


def curve(values: Sequence[float | None], width: int, height: int, *, unicode: bool) -> list[str]:
    """The last *width* values as columns of blocks in *height* lines, from 0 to the largest; None leaves a gap."""
    shown = list(values)[-width:]
    top = max((value for value in shown if value is not None), default=0.0)
    blocks = _BLOCKS if unicode else _PLAIN_BLOCKS
    steps = len(blocks) - 1
    heights = [0 if value is None or top <= 0 else max(int(value > 0), round(value / top * steps * height)) for value in shown]
    return [
        "".join(blocks[min(steps, max(0, each - level * steps))] for each in heights).rjust(width)
        for level in reversed(range(height))
    ]


__all__ = [
    "STYLES", "Line", "Row", "Span", "bar", "cells", "curve", "cut", "fitted", "folded", "literal", "padded", "plain",
    "shortened", "side_by_side", "table",
]  # fmt: skip
