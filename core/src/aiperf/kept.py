"""Values kept request by request for analyses, beside the folds.

Numbers go to a file beyond a bound.  Lists may have many millions of elements: over all reducers together at most
:data:`LISTED` are kept; where there are more, none is, so that how many reducers there were changes no result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from aiperf.columns import Column, Floats, Ints, Ragged, RecordBatch

HELD_ROWS = 16_384
"""Requests held in memory before they go to the file."""
LISTED = 1_000_000
"""Elements of lists that are kept."""


class Keeper:
    """One analysis in one phase of one reducer.  *path*: the beginning of the names of its files."""

    def __init__(self, path: Path, names: Sequence[str], lists: Sequence[str]) -> None:
        self._path, self._names, self._lists = path, tuple(names), tuple(lists)
        self._rows: list[Floats] = []
        self._held = 0
        self._ragged: dict[str, list[Ragged]] = {name: [] for name in lists}
        self._listed = 0

    def add(self, batch: RecordBatch, values: Mapping[str, Column]) -> None:
        """Take what was sent of a batch; *values*: of metrics, by tag."""
        sent = np.flatnonzero(~np.isnan(batch["started_ns"])).astype(np.int64)

        def column(name: str) -> Column:
            found = values[name] if name in values else batch.column(name)
            return found.take(sent) if isinstance(found, Ragged) else found[sent]

        self._rows.append(np.stack([np.asarray(column(name), dtype=np.float64) for name in self._names], axis=1))
        self._held += len(sent)
        if self._held > HELD_ROWS:
            self._spill()
        for name in self._lists if self._listed <= LISTED else ():
            found = column(name)
            assert isinstance(found, Ragged)
            self._ragged[name].append(found)
            self._listed += len(found.values)
        if self._listed > LISTED:
            self._ragged.clear()

    def dump(self) -> bytes:
        """Its state; the numbers are in the file."""
        self._spill()
        return msgspec.msgpack.encode((str(self._path), self._names, self._lists, self._listed, self._packed()))

    def _spill(self) -> None:
        with self._path.open("ab") as file:
            for rows in self._rows:
                file.write(rows.tobytes())
        self._rows, self._held = [], 0

    def _packed(self) -> dict[str, tuple[bytes, bytes]]:
        """Of each list column: lengths (int64) and values (float64)."""
        return {
            name: (
                np.concatenate([np.empty(0, dtype=np.int64), *(np.diff(each.offsets) for each in found)]).tobytes(),
                np.concatenate([np.empty(0), *(each.values for each in found)]).tobytes(),
            )
            for name, found in self._ragged.items()
        }


class Kept:
    """What several reducers kept for one analysis of one phase, together; one request after the other, in no particular order.

    Times are in ns since the run's start; NaN is absent.
    """

    def __init__(self, states: Sequence[bytes]) -> None:
        kind = tuple[str, tuple[str, ...], tuple[str, ...], int, dict[str, tuple[bytes, bytes]]]
        found = [msgspec.msgpack.decode(state, type=kind) for state in states]
        self._columns: dict[str, Floats] = {}
        self._lists: dict[str, tuple[Ints, Floats] | None] = {}
        for place, name in enumerate(found[0][1]):
            parts = [np.fromfile(path, dtype=np.float64).reshape(-1, len(names))[:, place] for path, names, _, _, _ in found]
            self._columns[name] = np.concatenate(parts)
        few = sum(listed for _, _, _, listed, _ in found) <= LISTED
        for name in found[0][2]:
            packed = [ragged[name] for _, _, _, _, ragged in found] if few else []
            lengths = [np.frombuffer(each, dtype=np.int64) for each, _ in packed]
            values = [np.frombuffer(each, dtype=np.float64) for _, each in packed]
            self._lists[name] = (np.concatenate(lengths), np.concatenate(values)) if few else None

    def column(self, name: str) -> Floats:
        """A value per request."""
        return self._columns[name]

    def lists(self, name: str) -> tuple[Ints, Floats] | None:
        """A list per request, as (lengths, all values one after the other); None where there are too many to keep."""
        return self._lists[name]
