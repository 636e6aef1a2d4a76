"""Values of many requests on their way to statistics: exact, mergeable, and flat in memory.

:class:`Samples` keep every value of a metric: in memory up to a bound, in a file of float64 beyond it.  Statistics are taken
at the end, one metric at a time, over sorted values with exact sums: neither order nor merging changes a number.

A list metric may have many millions of elements: beyond BUDGET they become counts in logarithmic buckets.  The centre of a
bucket is within 0.1 % of every value in it; sum, mean, minimum, maximum and standard deviation stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from aiperf_reducer_columns.statistics.described import (
    PERCENTILES,
    Adjusted,
    adjusted,
    adjusted_ranks,
    extent_of,
    ranked_statistics,
    shown_ranks,
    sides_of,
    statistics,
)
from aiperf_reducer_columns.statistics.exact_sum import Sum, deviation, exactly
from aiperf_reducer_columns.statistics.ranked import gathered, values_at

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, Ints
    from numpy.typing import DTypeLike, NDArray

IN_MEMORY = 16_384
"""Values of one metric in memory; more go to a file."""
BUDGET = 4_000_000
"""Elements of a list metric with exact values, over all reducers together."""
WHOLE = 1 << 21
"""Values of a metric that are put together in memory (16 MB), which is sooner; of more, ranks are found in passes."""
GROWTH = math.log(1.002)
_BLOCK = 65_536
"""Values that are read together."""
_PAIR = np.dtype([("group", "<i4"), ("value", "<f8")])
NOWHERE = int(np.iinfo(np.int32).min)
"""The group of a value that has none."""
_ANY = (NOWHERE, int(np.iinfo(np.int32).max))
ESTIMATE, LOW, HIGH, SLACK = "·estimate", "·low", "·high", "·slack"
"""Suffixes of a metric's tag: values that are estimates, apart from the known ones, and the parts of their Bounds."""


class Buckets(Struct):
    """Counts by logarithm: bucket i has values from 1.002^i to 1.002^(i + 1); *below* has negative values likewise."""

    counts: dict[int, int] = {}
    below: dict[int, int] = {}
    zeros: int = 0
    count: int = 0
    sum: Sum = msgspec.field(default_factory=Sum)
    squares: Sum = msgspec.field(default_factory=Sum)
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: Floats) -> None:
        """Add finite values, a block at a time: each block is copied several times."""
        for at in range(0, len(values), IN_MEMORY):
            self._take(values[at : at + IN_MEMORY])

    def _take(self, values: Floats) -> None:
        low, high = float(values.min()), float(values.max())
        if low > 0:  # nearly always
            _tally(self.counts, values)
        else:
            _tally(self.counts, values[values > 0])
            _tally(self.below, -values[values < 0])
            self.zeros += int((values == 0).sum())
        self.count += len(values)
        self.sum.add(values)
        self.squares.add(values * values)
        self.low, self.high = min(self.low, low), max(self.high, high)

    def extent(self, scale: float, percentiles: Sequence[float] = PERCENTILES) -> dict[str, float]:
        """Extremes, percentiles and the sum."""
        return extent_of(self.statistics(scale, percentiles))

    def merge(self, other: Buckets) -> None:
        for mine, theirs in ((self.counts, other.counts), (self.below, other.below)):
            add_counts(mine, theirs.items())
        self.zeros += other.zeros
        self.count += other.count
        self.sum.merge(other.sum)
        self.squares.merge(other.squares)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def statistics(self, scale: float, percentiles: Sequence[float] = PERCENTILES) -> dict[str, float]:
        mean = self.sum.exact() / self.count
        variance = max(Fraction(), self.squares.exact() / self.count - mean * mean)
        spread = math.sqrt(variance)
        extent = (float(mean), self.low, self.high, float(self.sum))
        return ranked_statistics(self._ranked(), self.count, *extent, spread, scale, percentiles)

    def quantile(self, share: float) -> float:
        """The value that *share* (0 to 1) of the values are at or below.  The buckets must not be empty."""
        return self._ranked()(min(self.count - 1, int(share * self.count)))

    def _ranked(self) -> Callable[[int], float]:
        """A function from a rank, from 0, to its value."""
        ordered = [(-math.exp((i + 0.5) * GROWTH), self.below[i]) for i in sorted(self.below, reverse=True)]
        ordered += [(0.0, self.zeros)] if self.zeros else []
        ordered += [(math.exp((i + 0.5) * GROWTH), self.counts[i]) for i in sorted(self.counts)]
        values = np.clip(np.array([value for value, _ in ordered]), self.low, self.high)
        ends = np.cumsum([n for _, n in ordered])

        def at(rank: int) -> float:
            return float(values[np.searchsorted(ends, rank, side="right")])

        return at


def merged_buckets(parts: Iterable[Buckets]) -> Buckets:
    """All of them in the first, of which there must be one."""
    first, *others = parts
    for other in others:
        first.merge(other)
    return first


def _tally(counts: dict[int, int], values: Floats) -> None:
    """Count positive values by bucket."""
    if not len(values):
        return
    numbers = np.log(values)
    numbers /= GROWTH
    buckets = np.floor(numbers, out=numbers).astype(np.int64)
    least = int(buckets.min())
    buckets -= least
    tally = np.bincount(buckets)  # at most 700,000 long, for the two extremes of float64; sorting took twice the time
    filled = np.flatnonzero(tally)
    add_counts(counts, zip((filled + least).tolist(), tally[filled].tolist(), strict=True))


def add_counts(counts: dict[int, int], more: Iterable[tuple[int, int]]) -> None:
    """Add *more* to the counts, in place."""
    for key, count in more:
        counts[key] = counts.get(key, 0) + count


class Spool:
    """Arrays of one type: in memory up to a bound, in the file *path* beyond it."""

    def __init__(self, path: Path, dtype: DTypeLike, places: Ints | None = None) -> None:
        """*places*: of :meth:`Samples.renumbered`."""
        self.path, self._dtype, self._places = path, dtype, places
        self._arrays: list[NDArray[Any]] = []
        self._in_memory = 0

    def add(self, values: NDArray[Any]) -> None:
        self._arrays.append(values)
        self._in_memory += len(values)
        if self._in_memory > IN_MEMORY:
            self.spill()

    def spill(self) -> None:
        """Move what is in memory to the file."""
        if self._arrays:
            with self.path.open("ab") as file:
                for values in self._arrays:
                    file.write(values.astype(self._dtype, copy=False).tobytes())
            self._arrays, self._in_memory = [], 0

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Everything, in no particular order, a block at a time."""
        if self.path.exists():
            with self.path.open("rb") as file:
                while len(block := np.fromfile(file, self._dtype, _BLOCK)):
                    yield self._placed(block)
        yield from map(self._placed, self._arrays)

    def values(self) -> NDArray[Any]:
        """Everything at once; the array is the caller's own."""
        stored = np.fromfile(self.path, self._dtype) if self.path.exists() else np.empty(0, self._dtype)
        return self._placed(np.concatenate([stored, *self._arrays]) if self._arrays else stored)

    def renumbered(self, places: Ints) -> Spool:
        """The same values, their groups under other numbers."""
        same = Spool(self.path, self._dtype, places)
        same._arrays, same._in_memory = self._arrays, self._in_memory
        return same

    def _placed(self, block: NDArray[Any]) -> NDArray[Any]:
        if self._places is None:
            return block
        groups = self._places.take(block["group"], mode="clip")
        block = block[groups != NOWHERE]  # a copy
        block["group"] = groups[groups != NOWHERE]
        return block

    def clear(self) -> None:
        self._arrays, self._in_memory = [], 0
        self.path.unlink(missing_ok=True)


class Samples:
    """One metric's values in one phase, each with its group where *grouped*.

    *path*: the file for more than IN_MEMORY; *listed*: elements of lists; *buckets*: by group, all in group 0 without groups.
    """

    def __init__(
        self, path: Path, *, grouped: bool = False, listed: bool = False, count: int = 0,
        buckets: dict[int, Buckets] | None = None,
    ) -> None:  # fmt: skip
        self.spool = Spool(path, _PAIR if grouped else np.float64)
        self.grouped, self.listed, self.count, self.buckets = grouped, listed, count, buckets

    def add(self, values: Floats, groups: Ints | None = None) -> None:
        """Add values in base units, with their groups; those that aren't finite, or are NOWHERE, are absent."""
        known = np.isfinite(values) if groups is None else np.isfinite(values) & (groups != NOWHERE)
        block: NDArray[Any] = values[known]
        if groups is not None:
            pairs = np.empty(len(block), _PAIR)
            pairs["group"], pairs["value"] = groups[known], block
            block = pairs
        if not len(block):
            return
        self.count += len(block)
        if self.buckets is None and self.listed and self.count > BUDGET:
            self.buckets = {}
            for earlier in self.spool.blocks():
                _fill(self.buckets, earlier)
            self.spool.clear()
        if self.buckets is None:
            self.spool.add(block)
        else:
            _fill(self.buckets, block)

    def renumbered(self, places: Ints) -> Samples:
        """The same values, each in the group ``places[group]``; without those of NOWHERE."""
        kept: dict[int, Buckets] | None = None
        if self.buckets is not None:
            renumbered = ((place_of(places, group), buckets) for group, buckets in self.buckets.items())
            kept = {place: buckets for place, buckets in renumbered if place != NOWHERE}
        same = Samples(self.spool.path, grouped=True, listed=self.listed, count=self.count, buckets=kept)
        same.spool = self.spool.renumbered(places)
        return same

    def dump(self) -> bytes:
        """The state as bytes; the values are in the file."""
        self.spool.spill()
        return msgspec.msgpack.encode((str(self.spool.path), self.grouped, self.listed, self.count, self.buckets))

    @classmethod
    def load(cls, data: bytes) -> Samples:
        path, grouped, listed, count, buckets = msgspec.msgpack.decode(
            data, type=tuple[str, bool, bool, int, dict[int, Buckets] | None]
        )
        return cls(Path(path), grouped=grouped, listed=listed, count=count, buckets=buckets)


def place_of(places: Ints, group: int) -> int:
    """The number of *group* in *places*, whose last is that of all greater groups, too."""
    return int(places[min(group, len(places) - 1)])


def _apart(block: NDArray[Any], within: tuple[int, int] = _ANY) -> Iterator[tuple[int, Floats]]:
    """The values of each group, groups in ascending order; a group outside *within* counts in the nearest one."""
    if block.dtype.names is None:
        yield 0, block
        return
    groups = np.clip(block["group"], *within)
    order = np.argsort(groups, kind="stable")
    groups, values = groups[order], block["value"][order]
    edges = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
    for begin, end in pairwise(edges):
        if end > begin:
            yield int(groups[begin]), values[begin:end]


def _fill(buckets: dict[int, Buckets], block: NDArray[Any], within: tuple[int, int] = _ANY) -> None:
    for group, values in _apart(block, within):
        buckets.setdefault(group, Buckets()).add(values)


def _nowhere(rank: int) -> float:
    raise IndexError(f"there is no value of rank {rank}: there are none")


class Merged:
    """The samples of one metric from several reducers, as one.  *within*: the first and the last group.

    *bounds*: where some values are estimates, the samples with their lower bounds in their place, those with their upper
    bounds, and by how much the sum may be wrong.  *percentiles*: of its statistics.
    """

    def __init__(
        self, samples: list[Samples], within: tuple[int, int] = _ANY, bounds: tuple[Merged, Merged, float] | None = None,
        percentiles: Sequence[float] = PERCENTILES,
    ) -> None:  # fmt: skip
        self._samples, self._within, self._bounds, self._percentiles = samples, within, bounds, percentiles
        self.count = sum(part.count for part in samples)
        # The count of all reducers together decides: their number changes no result.
        self.listed = any(part.listed for part in samples)
        self._bucketed = any(part.buckets is not None for part in samples) or (self.listed and self.count > BUDGET)

    def groups(self) -> Iterator[tuple[int, Floats | Buckets]]:
        """Each group's values, groups in ascending order: values in ascending order, or as buckets beyond the budget."""
        if self._bucketed:
            yield from sorted(self._buckets.items())
        elif self.count:
            for group, values in _apart(self._whole(), self._within):
                values.sort()
                yield group, values

    @cached_property
    def _buckets(self) -> dict[int, Buckets]:
        merged: dict[int, Buckets] = {}
        for part in self._samples:
            for group, buckets in (part.buckets or {}).items():
                merged.setdefault(int(np.clip(group, *self._within)), Buckets()).merge(buckets)
            for block in part.spool.blocks():  # none beside buckets
                _fill(merged, block, self._within)
        return merged

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All exact values, in no particular order, a block at a time."""
        return (block for part in self._samples for block in part.spool.blocks())

    def _whole(self) -> NDArray[Any]:
        parts = [part.spool.values() for part in self._samples]
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0)])

    def sum(self) -> float | None:
        """Exact sum in base units, rounded once; None where there are no values."""
        if not self.count:
            return None
        return float(self._buckets[0].sum) if self._bucketed else float(self._total)

    def values(self) -> Floats:
        """All exact values in ascending order."""
        values = self._whole()
        values.sort()
        return values

    def least(self) -> float | None:
        return self._buckets[0].low if self._bucketed else min((float(block.min()) for block in self.blocks()), default=None)

    def most(self) -> float | None:
        return self._buckets[0].high if self._bucketed else max((float(block.max()) for block in self.blocks()), default=None)

    def statistics(self, scale: float) -> dict[str, float] | None:
        """Every statistic, times *scale* (display units per base unit); None where there are no values."""
        if not self.count:
            return None
        if self._bucketed:
            return self._buckets[0].statistics(scale, self._percentiles)
        if self.count <= WHOLE:
            return statistics(self._whole(), scale, self._percentiles)
        at, total = self._at({*shown_ranks(self.count, self._percentiles)}), self._total
        extent = (float(total / self.count), at(0), at(self.count - 1), float(total))
        spread = deviation(lambda: gathered(self.blocks()), total, self.count, extent[1], extent[2])
        return ranked_statistics(at, self.count, *extent, spread, scale, self._percentiles)

    def bounds(self, scale: float) -> list[dict[str, float]]:
        """Lower and upper bounds of the mean, the sum, the percentiles and the extremes; empty where all values are known."""
        total = self.sum()
        if self._bounds is None or total is None:
            return []
        low, high, slack = self._bounds
        return sides_of(total, slack, self.count, [side.extent(scale) for side in (low, high)], scale)

    def side(self, number: int | None) -> Floats | None:
        """Values in ascending order; *number*: with the lower (0) or the upper bounds (1) of estimates.  None of lists."""
        sides = () if self._bounds is None or number is None else self._bounds[:2]
        return None if self.listed or not self.count else (sides[number or 0] if sides else self).values()

    def extent(self, scale: float) -> dict[str, float]:
        """Extremes, percentiles and the sum, rounded; there are values."""
        if self._bucketed:
            return self._buckets[0].extent(scale, self._percentiles)
        at, last = self._at({*shown_ranks(self.count, self._percentiles)}), self.count - 1
        shown = (at, self.count, 0.0, at(0), at(last), float(self._total), 0.0, scale, self._percentiles)
        return extent_of(ranked_statistics(*shown))

    def adjusted(self, failed: int, scale: float) -> Adjusted | None:
        """Statistics with *failed* more, infinite values, and their bounds; None where the values are in buckets."""
        if self._bucketed:
            return None
        sides = () if self._bounds is None else self._bounds[:2]
        worse, *bounds = [each.worse(failed, scale) for each in (self, *sides)]
        return worse, bounds

    def worse(self, failed: int, scale: float) -> dict[str, float]:
        """Statistics with *failed* more, infinite values; the values are not in buckets."""
        at = self._at({*adjusted_ranks(self.count, failed, self._percentiles)}) if self.count else _nowhere
        return adjusted(at, self.count, failed, scale, self._percentiles)

    def above(self, limit: float) -> int:
        """Number of exact values greater than *limit*."""
        return sum(int((block > limit).sum()) for block in self.blocks())

    def _at(self, ranks: Collection[int]) -> Callable[[int], float]:
        """A function from each of these *ranks*, from 0, to its value; there are values, and not in buckets."""
        if self.count <= WHOLE:
            return self.values().item
        return values_at(self.blocks, [*ranks]).__getitem__

    @cached_property
    def _total(self) -> Fraction:
        """The exact sum of exact values."""
        return sum(map(exactly, gathered(self.blocks())), Fraction())
