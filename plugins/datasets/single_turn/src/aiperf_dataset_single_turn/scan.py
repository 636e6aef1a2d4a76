"""A quick scan of files: a few keys of each row of JSON, decoded by blocks of lines, and the number of rows of CSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from aiperf_rows.row_files import blocks, delimiter_of

_T = TypeVar("_T")
_COMPRESSED = (".gz", ".zst")
_QUOTE, _NEWLINE = 0x22, 0x0A
"""The bytes of a quotation mark and of a line end."""
_ENDS = (0x0A, 0x0D)
_SMALL = 1 << 17
"""Bytes of a block below which numpy doesn't pay."""


def scanned(path: Path, decoder: msgspec.json.Decoder[_T]) -> Iterator[tuple[int, memoryview, list[_T] | None]]:
    """By block: the number of its first line, from 1, the block, and what *decoder* reads of each line.

    None where lines must be read one by one (:func:`numbered`): a line is blank, or *decoder* refuses one.

    Raises:
        BadDataset: The file can't be read.
    """
    first = 1
    for block in blocks(path):
        count = _lines(block)
        try:
            rows = decoder.decode_lines(block)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            rows = []
        yield first, block, rows if len(rows) == count else None
        first += count


def _lines(block: memoryview) -> int:
    if len(block) < _SMALL:
        ends = bytes(block).count(b"\n")
    else:
        import numpy as np  # 0.1 s, and small files need none

        ends = int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
    return ends + (block[-1] != _NEWLINE)


def numbered(first: int, block: memoryview) -> Iterator[tuple[int, bytes]]:
    """Line numbers and lines of a block whose first line is *first*; blank lines are skipped."""
    return ((number, line) for number, line in enumerate(bytes(block).split(b"\n"), first) if line.strip())


def csv_rows(path: Path) -> int | None:
    """How many rows a CSV file has behind its header, which lines and quotes tell if no quote stands within an unquoted value.

    None where only a reader of CSV can tell, also of compressed files.

    Raises:
        BadDataset: The file can't be read.
    """
    if path.suffix in _COMPRESSED:
        return None
    import numpy as np

    rows, last, quoted = -1, _NEWLINE, 0
    allowed: list[int] = []
    for block in map(bytes, blocks(path)):
        if not allowed:
            header = block.partition(b"\n")[0].decode(errors="replace")
            allowed = [_QUOTE, _NEWLINE, ord(delimiter_of(header))]
        if block.count(b"\r") != block.count(b"\r\n") or (not quoted and block[0] in _ENDS):
            return None  # other ends of lines, or a blank line
        found = np.frombuffer(block, np.uint8)
        ends, quotes = (np.flatnonzero(found == byte) for byte in (_NEWLINE, _QUOTE))
        opening = quotes[quoted::2]
        before = np.where(opening > 0, found[opening - 1], last)
        ends = ends[(np.searchsorted(quotes, ends) + quoted) % 2 == 0]
        if not np.isin(before, allowed).all() or np.isin(found[ends[ends < len(found) - 1] + 1], _ENDS).any():
            return None
        rows += len(ends)
        quoted, last = (quoted + len(quotes)) % 2, block[-1]
    return rows + (last != _NEWLINE)


__all__ = ["csv_rows", "numbered", "scanned"]
