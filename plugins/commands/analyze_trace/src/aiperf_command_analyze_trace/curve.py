"""Hit rate over cache size: stack distances under LRU (Mattson et al. 1970), of a sample where there are many references.

A request looks its blocks up as they were before it, then uses them, the last block first, so that a block is never dropped
before the blocks behind it.  A block is found in a cache of N blocks where fewer than N others were used since it was.  Its
distance is the number of blocks before it in the row of its last use, which is known, and of different blocks in the rows
between: of the references there whose own last use was earlier than the block's.  Among many references that share is taken
of a sample, of those between alone: so short distances stay exact, and a block of very many rows weighs no more than another.
SHARDS (Waldspurger et al., FAST 2015) samples blocks instead, because it does not keep the last use of every block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from aiperf_command_analyze_trace.blocks import Batch
from aiperf_command_analyze_trace.tables import Growing, Keys, Numbers, mixed

EXACT = 200_000
"""References up to which every one is in the sample."""
_PLACES = 24
"""Bits of a place in a row, in the time of a use: row, then place, the last place first."""
_LAST_PLACE = (1 << _PLACES) - 1
"""The highest place in a row: all bits of a place."""
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class CachePoint(Struct, frozen=True):
    """*hit_rate*: share of all blocks that a cache of so many blocks holds, in [0, 1]."""

    blocks: int
    hit_rate: float


class CacheCurve:
    """Takes the batches of a trace; gives the hit rate of any size."""

    def __init__(self) -> None:
        self._last = Growing(np.int64, -1)
        self._total = self._warm = 0
        self._sample, self._lengths = _Sample(EXACT), Growing(np.int32)
        self._distances: NDArray[np.float64] | None = None

    @property
    def exact(self) -> bool:
        return self._total <= EXACT

    @property
    def rate(self) -> float:
        """Share of the references among which distances are counted; 1 where they are exact."""
        return self._sample.rate

    def add(self, batch: Batch) -> None:
        """Take the next rows.  An id that a row has twice counts once."""
        if not len(batch.numbers):
            return
        order = np.argsort(batch.numbers, kind="stable")
        numbers, rows = batch.numbers[order], batch.rows[order]
        last = self._last.reach(int(numbers[-1]) + 1)
        twice = np.zeros(len(order), np.bool_)
        twice[1:] = (numbers[1:] == numbers[:-1]) & (rows[1:] == rows[:-1])
        places = batch.places
        if twice.any():
            extra = np.zeros(len(order), np.int64)
            extra[order[twice]] = 1
            gone = np.cumsum(extra)
            places = places - (gone - (gone[batch.starts] - extra[batch.starts]))
            order, numbers = order[~twice], numbers[~twice]
        times = (batch.rows << _PLACES) + (_LAST_PLACE - places)
        sorted_times = times[order]
        same = np.concatenate(([False], numbers[1:] == numbers[:-1]))
        before = np.where(same, np.concatenate(([-1], sorted_times[:-1])), last[numbers])
        ends = np.concatenate((~same[1:], [True]))[: len(numbers)]
        last[numbers[ends]] = sorted_times[ends]
        self._total += len(order)
        self._warm += int(np.count_nonzero(before >= 0))
        lengths = self._lengths.reach(int(batch.rows[-1]) + 1)
        np.add.at(lengths, batch.rows[order], 1)
        self._sample.add(mixed(sorted_times.astype(np.uint64)), sorted_times, before)

    def hit_rate(self, blocks: int) -> float:
        """Share of the blocks that a cache of so many blocks holds when they are asked for; 0 without blocks."""
        distances = self._sorted_distances()
        if not len(distances):
            return 0.0
        found = np.searchsorted(distances, blocks, side="left") / len(distances)
        return float(found * self._warm / self._total)

    def points(self, distinct: int) -> list[CachePoint]:
        """Four sizes for each doubling, up to one that holds everything."""
        sizes = {round(2 ** (step / 4)) for step in range(4 * max(1, distinct).bit_length())}
        return self.sizes(sorted({*(size for size in sizes if size < distinct), max(1, distinct)}))

    def sizes(self, sizes: Sequence[int]) -> list[CachePoint]:
        return [CachePoint(size, self.hit_rate(size)) for size in sizes]

    def _sorted_distances(self) -> NDArray[np.float64]:
        """For each asked reference, how many other blocks were used since the block was."""
        if self._distances is None:
            times, before = self._sample.values()
            rows, asked = times >> _PLACES, before >= 0
            upto, since = rows[asked], before[asked] >> _PLACES
            different = _smaller_before(rows, before)[asked] - np.searchsorted(rows, since, side="right")
            sampled = np.searchsorted(rows, upto, side="left") - np.searchsorted(rows, since, side="right")
            ends = np.cumsum(self._lengths.values, dtype=np.int64)
            all_ = ends[upto - 1] - ends[since]
            ahead = _LAST_PLACE - (before[asked] & _LAST_PLACE)
            self._distances = np.sort(ahead + different * all_ / np.maximum(sampled, 1) + np.where(sampled, 0, all_))
        return self._distances


class _Sample:
    """References whose hash is below a bound that falls, so that never more than *most* stay."""

    def __init__(self, most: int) -> None:
        self._most, self._bound = most, _ALL
        self._parts: list[tuple[Keys, Numbers, Numbers]] = []
        self._count = 0

    @property
    def rate(self) -> float:
        return 1.0 if self._bound == _ALL else float(self._bound) / 2.0**64

    def add(self, hashes: Keys, times: Numbers, before: Numbers) -> None:
        if self._bound != _ALL:
            kept = hashes < self._bound
            hashes, times, before = hashes[kept], times[kept], before[kept]
        self._parts.append((hashes, times, before))
        self._count += len(hashes)
        if self._count > self._most:
            self.keep(self._most * 3 // 4)

    def keep(self, most: int) -> None:
        """Keep those with the least hashes, about *most*; references with one hash stay or go together."""
        hashes, times, before = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        if len(hashes) > most:
            self._bound = np.partition(hashes, most)[most]
            kept = hashes < self._bound
            hashes, times, before = hashes[kept], times[kept], before[kept]
        self._parts, self._count = [(hashes, times, before)], len(hashes)

    def values(self) -> tuple[Numbers, Numbers]:
        """Times of the references, in their order, and of the uses before (-1: none)."""
        if not self._parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        times, before = (np.concatenate(column) for column in zip(*((part[1], part[2]) for part in self._parts), strict=True))
        order = np.argsort(times)
        return times[order], before[order]


def _smaller_before(rows: Numbers, values: Numbers) -> Numbers:
    """For each element the number of elements with a smaller row and a smaller value; -1 is no value, and smaller than all.

    All elements, in the order of their values, are divided by one bit of their rows after the other, the greatest first, as in
    a wavelet tree: those that go left before an element that goes right have a smaller row and a smaller value.
    """
    counts = np.zeros(len(rows), np.int64)
    order = np.argsort(values, kind="stable")
    index = np.arange(len(rows))
    for bit in range(int(rows.max(initial=0)).bit_length() - 1, -1, -1):
        here = rows[order]
        right = (here >> bit) & 1 == 1
        node = here >> (bit + 1)
        begins = np.flatnonzero(np.concatenate(([True], node[1:] != node[:-1])))
        sizes = np.diff(np.concatenate((begins, [len(rows)])))
        start = np.repeat(begins, sizes)
        lefts = np.concatenate(([0], np.cumsum(~right)))
        left_before = lefts[:-1] - lefts[start]
        counts[order[right]] += left_before[right]
        all_left = np.repeat(lefts[begins + sizes] - lefts[begins], sizes)
        place = start + np.where(right, all_left + (index - start - left_before), left_before)
        moved = np.empty_like(order)
        moved[place] = order
        order = moved
    return counts
