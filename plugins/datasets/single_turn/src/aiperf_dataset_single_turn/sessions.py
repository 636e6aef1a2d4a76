"""Groups rows by session: rows in the order of the file, sessions in the order of their first rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from aiperf import rows

Row = tuple[int, dict[str, Any]]
"""Line number and object."""


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
