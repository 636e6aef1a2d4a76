"""Values of many requests on their way to statistics: exact, mergeable, and flat in memory.

A fold keeps every value: in memory up to a bound, in a file of float64 beyond it.  Statistics are taken one metric at a
time at the end, over the sorted values, with exact sums, so that neither order nor merging changes a number.

Elements of list metrics may be many millions: beyond BUDGET they are kept as counts in logarithmic buckets, whose centres
are within 0.1 % of any value in them; sum, minimum and maximum stay exact to rounding.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from aiperf.columns import Floats, Ints

IN_MEMORY = 65_536
"""Values of one metric held in memory before they go to a file."""
BUDGET = 4_000_000
"""Elements of a list metric kept exactly."""
_GROWTH = math.log(1.002)
_PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)


class Buckets(Struct):
    """Counts by logarithm: bucket i holds values from 1.002^i to 1.002^(i + 1); zeros and less apart."""

    counts: dict[int, int] = {}
    rest: dict[float, int] = {}
    count: int = 0
    sum: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: Floats) -> None:
        if not len(values):
            return
        positive = values[values > 0]
        for i, n in zip(*np.unique(np.floor(np.log(positive) / _GROWTH).astype(np.int64), return_counts=True), strict=True):
            self.counts[int(i)] = self.counts.get(int(i), 0) + int(n)
        for value, n in zip(*np.unique(values[values <= 0], return_counts=True), strict=True):
            self.rest[float(value)] = self.rest.get(float(value), 0) + int(n)
        self.count += len(values)
        self.sum += math.fsum(values)
        self.squares += math.fsum(values * values)
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    def merge(self, other: Buckets) -> None:
        for i, n in other.counts.items():
            self.counts[i] = self.counts.get(i, 0) + n
        for value, n in other.rest.items():
            self.rest[value] = self.rest.get(value, 0) + n
        self.count += other.count
        self.sum += other.sum
        self.squares += other.squares
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def statistics(self, scale: float) -> dict[str, float]:
        centres = {i: math.exp((i + 0.5) * _GROWTH) for i in self.counts}
        ordered = sorted([*self.rest.items(), *((centres[i], n) for i, n in self.counts.items())])
        values = np.clip(np.array([value for value, _ in ordered]), self.low, self.high)
        ends = np.cumsum([n for _, n in ordered])

        def at(rank: int) -> float:
            return float(values[np.searchsorted(ends, rank, side="right")])

        def percentile(q: int) -> float:
            i = q / 100 * (self.count - 1)
            low = math.floor(i)
            below, above = at(low), at(min(low + 1, self.count - 1))
            return below + (i - low) * (above - below)

        mean = self.sum / self.count
        spread = math.sqrt(max(0.0, self.squares / self.count - mean * mean))
        return _shown(mean, self.low, self.high, self.sum, [percentile(q) for q in _PERCENTILES], spread, self.count, scale)


class Fold:
    """One metric's values in one phase.  *path* is where they go beyond IN_MEMORY; *listed*: elements of lists."""

    def __init__(self, path: Path, *, listed: bool = False) -> None:
        self._path, self._listed = path, listed
        self._held: list[Floats] = []
        self._held_count = 0
        self.count = 0
        self.buckets: Buckets | None = None

    def add(self, values: Floats) -> None:
        """Take values in base units; NaN is absent."""
        values = values[~np.isnan(values)]
        if not len(values):
            return
        self.count += len(values)
        if self.buckets is not None:
            self.buckets.add(values)
            return
        self._held.append(values)
        self._held_count += len(values)
        if self._listed and self.count > BUDGET:
            self.buckets = Buckets()
            self.buckets.add(self.values())
            self._held, self._held_count = [], 0
            self._path.unlink(missing_ok=True)
        elif self._held_count > IN_MEMORY:
            self.spill()

    def spill(self) -> None:
        """Move what is held to the file."""
        if self._held:
            with self._path.open("ab") as file:
                for values in self._held:
                    file.write(values.astype(np.float64, copy=False).tobytes())
            self._held, self._held_count = [], 0

    def values(self) -> Floats:
        """All values that are kept exactly, in no particular order."""
        stored = np.fromfile(self._path, dtype=np.float64) if self._path.exists() else np.empty(0)
        return np.concatenate([stored, *self._held]) if self._held else stored

    def dump(self) -> bytes:
        """The fold's state; its values are in the file."""
        self.spill()
        return msgspec.msgpack.encode((str(self._path), self._listed, self.count, self.buckets))

    @classmethod
    def load(cls, data: bytes) -> Fold:
        path, listed, count, buckets = msgspec.msgpack.decode(data, type=tuple[str, bool, int, Buckets | None])
        fold = cls(Path(path), listed=listed)
        fold.count, fold.buckets = count, buckets
        return fold


class Merged:
    """The folds of one metric from several reducers, as one."""

    def __init__(self, folds: list[Fold]) -> None:
        self._folds = folds
        self.count = sum(fold.count for fold in folds)
        self._sum: float | None = None

    def _sorted(self) -> Floats:
        return np.sort(np.concatenate([fold.values() for fold in self._folds])) if self._folds else np.empty(0)

    def _bucketed(self) -> Buckets | None:
        if all(fold.buckets is None for fold in self._folds):
            return None
        merged = Buckets()
        for fold in self._folds:
            if fold.buckets is not None:
                merged.merge(fold.buckets)
            else:
                merged.add(fold.values())
        return merged

    def sum(self) -> float | None:
        """Exact sum in base units; None where there are no values."""
        if not self.count:
            return None
        if self._sum is None:
            buckets = self._bucketed()
            self._sum = buckets.sum if buckets is not None else math.fsum(self._sorted())
        return self._sum

    def values(self) -> Floats:
        """All values, where they are kept exactly."""
        return self._sorted()

    def least(self) -> float | None:
        return float(self._sorted()[0]) if self.count else None

    def most(self) -> float | None:
        return float(self._sorted()[-1]) if self.count else None

    def statistics(self, scale: float) -> dict[str, float] | None:
        """Every statistic in the display unit (*scale* times the base unit); None where there are no values."""
        if not self.count:
            return None
        buckets = self._bucketed()
        return buckets.statistics(scale) if buckets is not None else statistics(self._sorted(), scale)


def statistics(ordered: Floats, scale: float = 1.0) -> dict[str, float]:
    """Statistics of sorted values: linear percentiles (R type 7), population standard deviation, exact sums."""
    n = len(ordered)
    total = math.fsum(ordered)
    mean = total / n
    spread = math.sqrt(math.fsum((ordered - mean) ** 2) / n) if n > 1 else 0.0
    percentiles = []
    for q in _PERCENTILES:
        i = q / 100 * (n - 1)
        low = math.floor(i)
        below, above = float(ordered[low]), float(ordered[min(low + 1, n - 1)])
        percentiles.append(below + (i - low) * (above - below))
    return _shown(mean, float(ordered[0]), float(ordered[-1]), total, percentiles, spread, n, scale)


def _shown(
    mean: float, low: float, high: float, total: float, percentiles: list[float], spread: float, count: int, scale: float
) -> dict[str, float]:
    shown = {"avg": mean * scale, "min": low * scale, "max": high * scale, "sum": total * scale}
    shown |= {f"p{q}": value * scale for q, value in zip(_PERCENTILES, percentiles, strict=True)}
    return shown | {"std": spread * scale, "count": count}


def offsets_of(lengths: list[int]) -> Ints:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
