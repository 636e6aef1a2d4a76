"""The values of a column in ascending order, where memory should not hold them: parts are sorted in files and merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from aiperf.sdk.columns import Floats, Ints

from aiperf_reducer_columns.report.scratch import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Pairs: TypeAlias = NDArray[np.void]

IN_MEMORY = 1 << 19
"""Values that are sorted at once."""
_HELD = 1 << 17
"""Values of all parts together that are merged at once."""
_LEAST = 1024
"""Of each part so many, or more."""
_PAIR = np.dtype([("place", "<i8"), ("value", "<f8")])


def ascending(values: Floats, first: int = 0) -> tuple[Ints, Floats]:
    """The places of these values, from *first* on, in the order of the values, and the values; without NaN."""
    order = np.argsort(values, kind="stable")
    order = order[: len(values) - int(np.count_nonzero(np.isnan(values)))]  # NaN is behind all others
    return order + first, values[order]


class Ordering:
    """All values that *blocks* gives, in parts of about IN_MEMORY that are sorted each.  *folder*: of their file.

    Raises:
        OSError: The disk has no room.
    """

    def __init__(self, blocks: Iterable[Floats], folder: Path) -> None:
        self._folder = folder
        self._file: Scratch | None = None
        self._ends = [0]  # of the parts, in values
        held, count, first = [np.empty(0)], 0, 0
        for block in blocks:
            held.append(block)
            count += len(block)
            if count > IN_MEMORY:
                self._add(ascending(np.concatenate(held), first))
                held, count, first = [np.empty(0)], 0, first + count
        rest = ascending(np.concatenate(held), first)
        self._few = rest if self._file is None else ascending(np.empty(0))
        if self._file is not None:
            self._add(rest)

    def _add(self, part: tuple[Ints, Floats]) -> None:
        if self._file is None:
            self._file = Scratch(self._folder)
        pairs = np.empty(len(part[0]), _PAIR)
        pairs["place"], pairs["value"] = part
        self._file.add(pairs)
        self._ends.append(self._ends[-1] + len(pairs))

    def blocks(self) -> Iterator[tuple[Ints, Floats]]:
        """Blocks of places and values; of equal values the first comes first."""
        if self._file is None:
            places, values = self._few
            yield places.copy(), values.copy()
            return
        size = max(_LEAST, _HELD // len(self._ends))
        begins, ends = self._ends[:-1], self._ends[1:]
        heads: list[_Pairs] = [np.empty(0, _PAIR) for _ in ends]
        while True:
            for part, head in enumerate(heads):
                if not len(head) and begins[part] < ends[part]:
                    heads[part] = self._read(begins[part], min(size, ends[part] - begins[part]))
                    begins[part] += len(heads[part])
            unread = [part for part, end in enumerate(ends) if begins[part] < end]
            if not unread:
                break
            # What isn't read yet is behind the last value of this part's head.
            limit, least = min((float(heads[part]["value"][-1]), part) for part in unread)
            taken = []
            for part, head in enumerate(heads):
                count = int(np.searchsorted(head["value"], limit, side="right" if part <= least else "left"))
                taken.append(head[:count])
                heads[part] = head[count:]
            yield _merged(taken)
        yield _merged(heads)

    def _read(self, begin: int, count: int) -> _Pairs:
        assert self._file is not None
        return np.frombuffer(self._file.read(begin * _PAIR.itemsize, count * _PAIR.itemsize), _PAIR)


def _merged(parts: Sequence[_Pairs]) -> tuple[Ints, Floats]:
    pairs = np.concatenate(parts)
    order = np.argsort(pairs["value"], kind="stable")
    return pairs["place"][order], pairs["value"][order]
