"""Tables of plain text that keep to a width."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

BOX = "┌┬┐├┼┤└┴┘─│"
PLAIN = "+++++++++-|"


class Look(Struct, frozen=True):
    """The characters of lines (top, middle and bottom: left, cross, right; then ``─│``), and whether to use colours."""

    lines: str
    colour: bool = False

    def words(self, text: str) -> str:
        """The text, spelled out where only ASCII can be shown."""
        return text.replace("≤", "<=").replace("≥", ">=") if self.lines == PLAIN else text

    def bold(self, text: str) -> str:
        return self._styled(text, "1")

    def good(self, text: str) -> str:
        return self._styled(text, "32")

    def bad(self, text: str) -> str:
        return self._styled(text, "1;31")

    def _styled(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def table(
    look: Look,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    *,
    right: int | Collection[int],
    height: int | None = None,
) -> Iterator[str]:
    """A table's lines, cells wrapped to *widths*; *right*: how many of the last columns are set to the right, or which.

    A cell has at most *height* lines; one that is cut ends in ``...``.
    """
    dash, bar = look.lines[9], look.lines[10]
    to_right = range(len(header) - right, len(header)) if isinstance(right, int) else right

    def rule(which: int) -> str:
        left, cross, end = list(look.lines[3 * which : 3 * which + 3])
        return left + cross.join(dash * (width + 2) for width in widths) + end

    if title:
        yield look.bold(centred(title, total(widths)))
    yield rule(0)
    yield from _row(header, widths, to_right, height, bar)
    yield rule(1)
    for row in rows:
        yield from _row(row, widths, to_right, height, bar)
    yield rule(2)


def _row(
    row: Sequence[str], widths: Sequence[int], right: Collection[int], height: int | None, bar: str
) -> Iterator[str]:
    cells = [_cut(wrap(text, width), width, height) for text, width in zip(row, widths, strict=True)]
    for i in range(max(map(len, cells))):
        parts = [cell[i] if i < len(cell) else "" for cell in cells]
        gaps = [" " * (width - cells_of(part)) for part, width in zip(parts, widths, strict=True)]
        pairs = enumerate(zip(parts, gaps, strict=True))
        filled = [gap + part if column in right else part + gap for column, (part, gap) in pairs]
        yield f"{bar} {f' {bar} '.join(filled)} {bar}"


def _cut(lines: list[str], width: int, height: int | None) -> list[str]:
    if height is None or len(lines) <= height:
        return lines
    last = next(_pieces(lines[height - 1], width - 4)).rstrip()
    return [*lines[: height - 1], f"{last} ..."]


def total(widths: Sequence[int]) -> int:
    """Cells a table of these columns takes."""
    return sum(widths) + 3 * len(widths) + 1


def centred(text: str, width: int) -> str:
    return " " * max(0, (width - cells_of(text)) // 2) + text


def cells_of(text: str) -> int:
    """Cells a terminal gives the text: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def tame(text: str) -> str:
    """The text without control characters: a server's error message must not steer the terminal."""
    return text if text.isprintable() else "".join(character if character.isprintable() else " " for character in text)


def clean(text: str) -> str:
    """The same, words one space apart."""
    return " ".join(tame(text).split())


def wrap(text: str, width: int, *, first: str = "", indent: str = "") -> list[str]:
    """The text in lines of at most *width* cells, broken between words, inside one only where it must be.

    The first line begins with *first*, the others with *indent*.
    """
    if cells_of(text) + max(len(first), len(indent)) <= width:
        return [first + text]
    lines: list[str] = []
    line, empty = first, True
    for word in text.split(" "):
        if not empty and cells_of(line) + 1 + cells_of(word) <= width:
            line += f" {word}"
            continue
        for piece in _pieces(word, max(2, width - max(len(first), len(indent)))):
            if not empty:
                lines.append(line)
                line = indent
            line, empty = line + piece, False
    return [*lines, line]


def _pieces(word: str, width: int) -> Iterator[str]:
    """A word cut to at most *width* cells each."""
    if cells_of(word) <= width:
        yield word
        return
    piece, used = "", 0
    for character in word:
        cells = _cells(character)
        if used + cells > width:
            yield piece
            piece, used = "", 0
        piece += character
        used += cells
    yield piece
