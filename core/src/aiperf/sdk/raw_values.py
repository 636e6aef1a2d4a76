"""Values of each request for analyses, beside the folds.

Numbers beyond a bound go to a file, and lists to another.  Lists may have many millions of elements: at most a million are
kept over all reducers together.  Where there are more, none is kept: the number of reducers changes no result.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec
import numpy as np

from aiperf.sdk.columns import Column, Floats, Ints, Ragged, RecordBatch
from aiperf.sdk.trees import PlannedTree

HELD_ROWS = 16_384
"""Requests in memory; more go to a file."""
LISTED = 1_000_000
"""Elements of lists that are kept, at most."""


def _unknown_tree(entry: int) -> PlannedTree:
    return PlannedTree()


class RawValueCollector:
    """Collects the values for one analysis in one phase of one reducer.  *path*: its file."""

    def __init__(self, path: Path, names: Sequence[str], lists: Sequence[str]) -> None:
        self._path, self._names, self._lists = path, tuple(names), tuple(lists)
        self._rows: list[Floats] = []
        self._held = 0
        self._ragged: dict[str, list[Ragged]] = {name: [] for name in lists}
        self._listed = 0

    def add(self, batch: RecordBatch, values: Mapping[str, Column]) -> None:
        """Add the requests of a batch that were sent; *values*: of metrics, by tag."""
        sent = np.flatnonzero(~np.isnan(batch["started_ns"])).astype(np.int64)

        def sent_column(name: str) -> Column:
            column = values[name] if name in values else batch.column(name)
            return column.take(sent) if isinstance(column, Ragged) else column[sent]

        self._rows.append(np.stack([np.asarray(sent_column(name), dtype=np.float64) for name in self._names], axis=1))
        self._held += len(sent)
        if self._held > HELD_ROWS:
            self._spill()
        for name in self._lists if self._listed <= LISTED else ():
            lists = sent_column(name)
            assert isinstance(lists, Ragged)
            self._ragged[name].append(lists)
            self._listed += len(lists.values)
        if self._listed > LISTED:
            self._ragged.clear()

    def dump(self) -> bytes:
        """The state as bytes; numbers and lists are in files."""
        self._spill()
        if self._lists and self._listed <= LISTED:
            _lists_path(self._path).write_bytes(msgspec.msgpack.encode(self._packed()))
        return msgspec.msgpack.encode((str(self._path), self._names, self._lists, self._listed))

    def _spill(self) -> None:
        with self._path.open("ab") as file:
            for rows in self._rows:
                file.write(rows.tobytes())
        self._rows, self._held = [], 0

    def _packed(self) -> dict[str, tuple[bytes, bytes]]:
        """Lengths (int64) and values (float64) of each list column."""
        packed = {}
        for name, parts in self._ragged.items():
            lengths = np.concatenate([np.empty(0, dtype=np.int64), *(np.diff(part.offsets) for part in parts)])
            packed[name] = lengths.tobytes(), np.concatenate([np.empty(0), *(part.values for part in parts)]).tobytes()
        return packed


def _lists_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-lists")


class RawValues:
    """The values for one analysis of one phase from all reducers, request by request, in no particular order.

    Times are in ns since the run's start; NaN is absent.  tree: what an entry of the data set plans, by its number; a tree
    without streams where that isn't known.
    """

    def __init__(
        self, states: Sequence[bytes], percentiles: Sequence[float] = (), tree: Callable[[int], PlannedTree] | None = None
    ) -> None:
        self.tree = tree or _unknown_tree
        self.percentiles = tuple(percentiles)
        """Percentiles that the user asked for, ascending: results have them beside their own, each ``pNN`` once."""
        kind = tuple[str, tuple[str, ...], tuple[str, ...], int]
        collected = [msgspec.msgpack.decode(state, type=kind) for state in states]
        self._lists: dict[str, tuple[Ints, Floats] | None] = {}
        self._names = collected[0][1]
        row_bytes = len(self._names) * np.dtype(np.float64).itemsize
        self._paths = [path for path, *_ in collected]
        self._ends = [*accumulate(Path(path).stat().st_size // row_bytes for path in self._paths)]
        self._read_lists(collected[0][2], few=sum(listed for *_, listed in collected) <= LISTED)

    def _read_lists(self, names: Sequence[str], *, few: bool) -> None:
        kept = dict[str, tuple[bytes, bytes]]
        read = [_lists_path(Path(path)).read_bytes() for path in self._paths] if few and names else []
        packed = [msgspec.msgpack.decode(data, type=kept) for data in read]
        for name in names:
            lengths = [np.frombuffer(ragged[name][0], dtype=np.int64) for ragged in packed]
            values = [np.frombuffer(ragged[name][1], dtype=np.float64) for ragged in packed]
            self._lists[name] = (np.concatenate(lengths), np.concatenate(values)) if few else None

    def __len__(self) -> int:
        """The number of requests."""
        return self._ends[-1]

    @property
    def reducers(self) -> int:
        """The number of reducers; the requests of each stand together, by and large in the order of their ends."""
        return len(self._ends)

    def rows(self, begin: int, end: int) -> dict[str, Floats]:
        """The columns of the requests from number *begin* on, before number *end*: for an analysis whose memory has a bound."""
        width, tables = len(self._names), [np.empty((0, len(self._names)))]
        at, end = max(begin, 0), min(end, len(self))
        place = bisect_right(self._ends, at)
        while at < end:
            first, last = at - (self._ends[place - 1] if place else 0), min(end, self._ends[place])
            table = np.fromfile(self._paths[place], np.float64, (last - at) * width, offset=first * width * tables[0].itemsize)
            tables.append(table.reshape(-1, width))
            at, place = last, place + 1
        return dict(zip(self._names, np.concatenate(tables).T, strict=True))

    def column(self, name: str) -> Floats:
        """A value per request."""
        column = np.empty(len(self))
        for at in range(0, len(column), HELD_ROWS):
            column[at : at + HELD_ROWS] = self.rows(at, at + HELD_ROWS)[name]
        return column

    def lists(self, name: str) -> tuple[Ints, Floats] | None:
        """A list per request, as (lengths, all values one after the other); None where there are too many."""
        return self._lists[name]


__all__ = ["HELD_ROWS", "RawValueCollector", "RawValues"]
