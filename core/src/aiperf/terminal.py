"""Lines no wider than the terminal that shows them, and whether the parent process has it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

_PREFIX_CELLS = len("12:34:56.789 WARNING ")
"""Of a log line: time and level."""
_USUAL_COLUMNS = 80


def columns(stream: TextIO) -> int | None:
    """The width of the terminal behind *stream*, ``COLUMNS`` first; None where there is none."""
    if not stream.isatty():
        return None
    if (asked := os.environ.get("COLUMNS", "")).isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


def page_columns() -> int:
    """The width for a page on standard output: ``COLUMNS``, the terminal's, or 80 where it is none.

    ``shutil.get_terminal_size`` says the same; its imports are a twentieth of the time of ``--help``.
    """
    if (asked := os.environ.get("COLUMNS", "")).isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _USUAL_COLUMNS  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):
        return _USUAL_COLUMNS


def parent_has_terminal(descriptor: int) -> bool | None:
    """Whether the parent process is in the foreground of the terminal *descriptor*; None: it isn't its session's terminal.

    For a process that has left the session.  Elsewhere than on Linux, None.
    """
    try:
        fields = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        group, device, foreground = int(fields[2]), int(fields[4]), int(fields[5])
        terminal = os.fstat(descriptor).st_rdev
    except (OSError, ValueError, IndexError):
        return None
    # The kernel's number of a device: 12 bits of the major one stand inside the minor one.
    if (device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00) != (os.major(terminal), os.minor(terminal)):
        return None
    return group == foreground


def say(line: str, indent: str = "  ") -> None:
    """Print a sentence to standard error, as :func:`fitted` divides it."""
    print(fitted(line, sys.stderr, indent), file=sys.stderr)


def fitted(line: str, stream: TextIO, indent: str | None = None) -> str:
    """A line for *stream*: on a terminal in lines no wider than it, broken between words; elsewhere as it is.

    A word that is wider alone, as a path, stays whole, so that it can be copied.  *indent*: of the lines behind the first; None
    is that of the log.
    """
    width = columns(stream)
    if width is None or cells(line) <= width:
        return line
    if indent is None:
        indent = " " * (_PREFIX_CELLS if width >= 3 * _PREFIX_CELLS else 2)
    return "\n".join(piece for part in line.split("\n") for piece in _folded(part, width, indent))


def _folded(line: str, width: int, indent: str) -> list[str]:
    """The line in pieces, those behind the first with *indent*."""
    if cells(line) <= width:
        return [line]
    words = line.split(" ")
    pieces = [words[0]]
    for word in words[1:]:
        if cells(pieces[-1]) + 1 + cells(word) <= width or not pieces[-1].strip():
            pieces[-1] += f" {word}"
        elif word:
            pieces.append(indent + word)
    return pieces


def cells(text: str) -> int:
    """Cells that a terminal gives the text: two for wide characters, none for combining ones."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    import unicodedata  # of a third of a millisecond, and most texts need none

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
