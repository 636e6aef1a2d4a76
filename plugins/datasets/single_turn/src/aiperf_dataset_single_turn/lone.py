"""Files whose lines are conversations by themselves: counted before they are read, and read in any order."""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf_rows.bounds import bounded_lines
from aiperf_rows.row_files import is_table, lines

if TYPE_CHECKING:
    import numpy as np
    from aiperf.sdk.columns import Ints
    from numpy.typing import NDArray

_SESSION = b'"session_id"'
_COMPRESSED = (".gz", ".zst")
_SMALL = 1 << 20
"""A file up to this size is counted line by line, which needs no numpy."""
_AT_ONCE = 1 << 20
"""Bytes that are searched for line ends together."""
_SPACE = 0x20
"""The byte of a space: a line that begins with it, or with a lower one, may be blank."""


class LoneRows:
    """The lines of *path* that are rows; *count* of them.

    any_order: whether they can be asked for by their numbers, from 0; not of a compressed file.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._path, self.count = path, count
        self.any_order = path.suffix not in _COMPRESSED

    def lines(self, numbers: Iterable[int] | None = None) -> Iterator[tuple[int, int, bytes]]:
        """Numbers, line numbers from 1, and lines.  numbers: in any order, also several times; None are all, in their order.

        Raises:
            BadDataset: The file can't be read.
        """
        if numbers is None:
            yield from ((number, line, text) for number, (line, text) in enumerate(lines(self._path)))
            return
        starts, blank = array("q"), array("q")
        for found, without in _starts(self._path):
            starts.frombytes(found.tobytes())
            blank.frombytes(without.tobytes())
        with self._path.open("rb") as file:
            for number in numbers:
                file.seek(starts[number])
                line = 1 + number + bisect_right(blank, number)
                yield number, line, next(bounded_lines(self._path, file, line))


def lone_rows(path: Path, *, anything: bool = False) -> LoneRows | None:
    """The rows of a file of lines without sessions; None where a row may have one, or it is a table or a directory.

    anything: rows have no sessions, whatever is in them.

    Raises:
        BadDataset: The file can't be read.
    """
    if not path.is_file() or is_table(path):
        return None
    if path.suffix in _COMPRESSED or path.stat().st_size <= _SMALL:
        count = 0
        for _, line in lines(path):
            if _SESSION in line and not anything:
                return None
            count += 1
        return LoneRows(path, count)
    if not anything:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            if whole.find(_SESSION) >= 0:
                return None
    return LoneRows(path, sum(len(starts) for starts, _ in _starts(path)))


def _starts(path: Path) -> Iterator[tuple[Ints, Ints]]:
    """Where lines begin, without blank ones; and for each of those the number of lines before it that are not blank."""
    import numpy as np  # 0.1 s, and small files need none

    if not path.stat().st_size:
        return
    whole = np.memmap(path, np.uint8, "r")
    before = np.array([len(BOM_UTF8) if bytes(whole[:3]) == BOM_UTF8 else 0])
    rows = 0
    for at in range(0, len(whole), _AT_ONCE):
        starts = np.concatenate([before, np.flatnonzero(whole[at : at + _AT_ONCE] == 0x0A) + (at + 1)])
        before, starts = starts[-1:], starts[:-1]
        if at + _AT_ONCE >= len(whole):
            starts = np.concatenate([starts, before[before < len(whole)]])
        # A row begins with a brace: only lines that begin with a space are looked at one by one.
        doubtful = np.flatnonzero(whole[starts] <= _SPACE)
        blank = np.array([index for index in doubtful.tolist() if _is_blank(whole, int(starts[index]))], dtype=np.int64)
        yield np.delete(starts, blank), rows + blank - np.arange(len(blank))
        rows += len(starts) - len(blank)


def _is_blank(whole: NDArray[np.uint8], start: int) -> bool:
    """Whether the line that begins there is blank."""
    for at in range(start, len(whole), _AT_ONCE):
        line, end, _ = bytes(whole[at : at + _AT_ONCE]).partition(b"\n")
        if line.strip():
            return False
        if end:
            break
    return True


__all__ = ["LoneRows", "lone_rows"]
