"""Groups rows by session: rows in the order of the file, sessions in the order of their first rows."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, rows

_JSONL = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_BLANK = BOM_UTF8 + b" \t\n\r\v\f"
Row = tuple[int, dict[str, Any]]
"""Line number and object."""


def jsonl_files(folder: Path, *, deep: bool = False) -> list[tuple[str, Path]]:
    """The files of rows in a folder, with their names without endings, in the order of names.  deep: also in folders below."""
    inside = sorted(folder.rglob("*") if deep else folder.iterdir())
    return [(path.name.partition(".jsonl")[0], path) for path in inside if path.name.endswith(_JSONL) and path.is_file()]


def lone_rows(path: Path) -> int | None:
    """The number of rows of a file without sessions; None where a row may have one, or the file is compressed or no file."""
    if not path.is_file() or path.suffix in (".gz", ".zst"):
        return None
    count = 0
    with path.open("rb") as file:
        for line in file:
            if b'"session_id"' in line:
                return None
            count += bool(line.strip(_BLANK))
    return count


def alone(path: Path, session_of: Callable[[dict[str, Any], int], str | None]) -> Iterator[tuple[str | None, list[Row]]]:
    """Each row as a session of its own, of a file that has :func:`lone_rows`."""
    for line, row in rows(path):
        if session_of(row, line) is not None:
            raise BadDataset(f"{path}:{line}: the key session_id is written with escapes", 'write "session_id"')
        yield None, [(line, row)]


def grouped(path: Path, session_of: Callable[[dict[str, Any], int], str | None]) -> Iterator[tuple[str | None, list[Row]]]:
    """The sessions as (session id, rows); a row without an id is its own session.

    The file is read twice, so that memory holds only the rows between a session's first and last row.
    """
    last: dict[str, int] = {}
    for line, row in rows(path):
        identity = session_of(row, line)
        if identity is not None:
            last[identity] = line
    waiting: deque[tuple[str | None, list[Row]]] = deque()
    open_: dict[str, list[Row]] = {}
    for line, row in rows(path):
        identity = session_of(row, line)
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
