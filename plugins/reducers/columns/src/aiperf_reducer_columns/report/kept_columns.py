"""Columns of requests for several who ask: in memory up to a bound, in a file without a name beyond it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from aiperf.sdk.columns import Floats
from numpy.typing import DTypeLike, NDArray

from aiperf_reducer_columns.report.scratch import Scratch

MOST_BYTES = 1 << 26
"""Of columns that are kept in memory."""
BLOCK = 65_536
"""Requests of a block."""


class _Place(NamedTuple):
    """Where a part of a column stands in the file."""

    offset: int
    size: int
    dtype: DTypeLike


_Part: TypeAlias = "NDArray[np.floating] | _Place"


def narrow(column: Floats) -> NDArray[np.floating]:
    """The column in half its bytes, where these have the same numbers: of counts they do, of most times they don't."""
    small = column.astype(np.float32)
    return small if np.array_equal(small, column, equal_nan=True) else column


class KeptColumns:
    """The columns *names*, whose blocks are added.  *folder*: of the file."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self._parts: dict[str, list[_Part]] = {name: [] for name in names}
        self._folder, self._bytes = folder, 0
        self._file: Scratch | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def add(self, block: Mapping[str, Floats]) -> None:
        """Add requests: their values of each column.

        Raises:
            OSError: The disk has no room.
        """
        parts: dict[str, NDArray[np.floating]] = {name: narrow(block[name]) for name in self._parts}
        self._bytes += sum(part.nbytes for part in parts.values())
        if self._file is None and self._bytes > MOST_BYTES:
            self._file = Scratch(self._folder)
            for name, known in self._parts.items():
                self._parts[name] = [self._written(part) if isinstance(part, np.ndarray) else part for part in known]
        for name, part in parts.items():
            self._parts[name].append(part if self._file is None else self._written(part))

    def _written(self, part: NDArray[np.floating]) -> _Place:
        assert self._file is not None
        return _Place(self._file.add(part), part.nbytes, part.dtype)

    def column(self, name: str) -> Floats:
        """The whole column; the array is the caller's own."""
        return joined([self._read(part) for part in self._parts[name]])

    def blocks(self, names: Sequence[str]) -> Iterator[tuple[Floats, ...]]:
        """Blocks of these columns; the arrays are the caller's own."""
        for parts in zip(*(self._parts[name] for name in names), strict=True):
            yield tuple(self._read(part).astype(np.float64) for part in parts)

    def _read(self, part: _Part) -> NDArray[np.floating]:
        if not isinstance(part, _Place):
            return part
        assert self._file is not None
        return np.frombuffer(self._file.read(part.offset, part.size), part.dtype)


def joined(parts: Sequence[NDArray[np.floating]]) -> Floats:
    """A column whose parts these are."""
    return np.concatenate([np.empty(0, dtype=np.float32), *parts], dtype=np.float64)


def gathered(batches: Iterable[Mapping[str, Floats]], names: Sequence[str]) -> Iterator[dict[str, Floats]]:
    """The columns *names* of small batches, as blocks of BLOCK requests or a batch more."""
    held: list[Mapping[str, Floats]] = []
    count = 0
    for batch in batches:
        held.append({name: batch[name] for name in names})
        count += len(batch[names[0]])
        if count >= BLOCK:
            yield {name: np.concatenate([each[name] for each in held]) for name in names}
            held, count = [], 0
    if count:
        yield {name: np.concatenate([each[name] for each in held]) for name in names}
