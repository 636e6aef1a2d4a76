"""Groups rows by session: rows in the order of the file, sessions in the order of their first rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from aiperf_rows.row_files import is_csv, rows

_TEXTS = ("text", "text_input", "image", "audio", "video", "role", "model", "session_id", "type")
"""Columns of CSV whose cells are texts; other cells are JSON: numbers, lists, objects."""
_JSONL = (".jsonl", ".jsonl.gz", ".jsonl.zst")
Row = tuple[int, dict[str, Any]]
"""Line number and object."""


def jsonl_files(folder: Path, *, deep: bool = False) -> list[tuple[str, Path]]:
    """The files of rows in a folder, with their names without endings, in the order of names.  deep: also in folders below."""
    inside = sorted(folder.rglob("*") if deep else folder.iterdir())
    return [(path.name.partition(".jsonl")[0], path) for path in inside if path.name.endswith(_JSONL) and path.is_file()]


def typed(path: Path) -> Iterator[Row]:
    """The rows of a file; a cell of CSV that is no text has the value that it would have in JSON.

    Raises:
        BadDataset: As :func:`aiperf.rows`.
    """
    if not is_csv(path):
        yield from rows(path)
        return
    for line, row in rows(path):
        yield line, {name: cell if name in _TEXTS else _value(cell) for name, cell in row.items()}


def _value(cell: str) -> Any:
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError):
        return cell  # refused by the reader of the column


def grouped(
    path: Path,
    session_of: Callable[[dict[str, Any], int], str | None],
    read: Callable[[], Iterator[Row]] | None = None,
    note: Callable[[dict[str, Any], int], None] | None = None,
) -> Iterator[tuple[str | None, list[Row]]]:
    """The sessions as (session id, rows); a row without an id is its own session.

    The file is read twice, so that memory holds only the rows between a session's first and last row.
    read: gives its rows; None for them as they are.  note: gets every row in the order of the file, before its session comes.
    """
    read = read or partial(typed, path)
    last: dict[str, int] = {}
    for line, row in read():
        identity = session_of(row, line)
        if identity is not None:
            last[identity] = line
    waiting: deque[tuple[str | None, list[Row]]] = deque()
    open_: dict[str, list[Row]] = {}
    for line, row in read():
        identity = session_of(row, line)
        if note is not None:
            note(row, line)
        if identity is None:
            waiting.append((None, [(line, row)]))
        else:
            if identity not in open_:
                open_[identity] = []
                waiting.append((identity, open_[identity]))
            open_[identity].append((line, row))
            if last[identity] == line:
                del open_[identity]
        while waiting and waiting[0][0] not in open_:
            yield waiting.popleft()
