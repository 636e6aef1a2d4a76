"""Values of many requests on their way to statistics: exact, mergeable, and flat in memory.

A fold keeps every value: in memory up to a bound, in a file of float64 beyond it.  Statistics are taken one metric at a
time at the end, over the sorted values, with exact sums, so that neither order nor merging changes a number.

Elements of list metrics may be many millions: beyond BUDGET they are kept as counts in logarithmic buckets, whose centres
are within 0.1 % of any value in them; sum, mean, minimum, maximum and standard deviation stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from aiperf.columns import Floats

IN_MEMORY = 16_384
"""Values of one metric held in memory before they go to a file."""
BUDGET = 4_000_000
"""Elements of a list metric kept exactly, over all reducers together."""
_GROWTH = math.log(1.002)
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_BLOCK = 65_536
_MANTISSA = 53
_EXACT = float(1 << _MANTISSA)
_SPLIT = 26


class Sum(Struct):
    """A sum of floats without rounding, as few floats that add up to it; the same whatever the order of adding."""

    parts: list[float] = []

    def add(self, values: Floats) -> None:
        self._take(_exactly(values))

    def merge(self, other: Sum) -> None:
        self._take(sum(map(Fraction, other.parts), Fraction()))

    def exact(self) -> Fraction:
        return sum(map(Fraction, self.parts), Fraction())

    def _take(self, more: Fraction) -> None:
        rest = self.exact() + more
        parts = []
        while rest:
            parts.append(float(rest))
            rest -= Fraction(parts[-1])
        self.parts = parts

    def __float__(self) -> float:
        return self.parts[0] if self.parts else 0.0


def _exactly(values: Floats) -> Fraction:
    """The sum of finite values, by adding integers."""
    if not len(values):
        return Fraction()
    largest = max(float(values.max()), -float(values.min()))
    if largest < _EXACT:
        whole = values.astype(np.int64)
        if (whole == values).all():  # ns and tokens: nearly always
            if largest * len(whole) < _EXACT:
                return Fraction(int(whole.sum()))
            low = whole & ((1 << _SPLIT) - 1)
            return Fraction((int((whole >> _SPLIT).sum()) << _SPLIT) + int(low.sum()))
    fractions, exponents = np.frexp(values)
    mantissas = (fractions * _EXACT).astype(np.int64)
    high, low = mantissas >> _SPLIT, mantissas & ((1 << _SPLIT) - 1)
    total = Fraction()
    for exponent in np.unique(exponents).tolist():
        here = exponents == exponent
        units = (int(high[here].sum()) << _SPLIT) + int(low[here].sum())
        total += Fraction(units) * Fraction(2) ** (exponent - _MANTISSA)
    return total


class Buckets(Struct):
    """Counts by logarithm: bucket i holds values from 1.002^i to 1.002^(i + 1); *below* likewise those under zero."""

    counts: dict[int, int] = {}
    below: dict[int, int] = {}
    zeros: int = 0
    count: int = 0
    sum: Sum = msgspec.field(default_factory=Sum)
    squares: Sum = msgspec.field(default_factory=Sum)
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: Floats) -> None:
        """Take finite values, a block at a time: the steps between make several copies."""
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

    def merge(self, other: Buckets) -> None:
        for mine, theirs in ((self.counts, other.counts), (self.below, other.below)):
            for i, n in theirs.items():
                mine[i] = mine.get(i, 0) + n
        self.zeros += other.zeros
        self.count += other.count
        self.sum.merge(other.sum)
        self.squares.merge(other.squares)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def statistics(self, scale: float) -> dict[str, float]:
        at = self._ranked()
        mean = self.sum.exact() / self.count
        variance = max(Fraction(), self.squares.exact() / self.count - mean * mean)
        return _shown(
            float(mean), self.low, self.high, float(self.sum), [_percentile(at, q, self.count) for q in PERCENTILES],
            math.sqrt(variance), self.count, scale,
        )  # fmt: skip

    def quantile(self, share: float) -> float:
        """The value that *share* (0 to 1) of the values are at or below; there must be some."""
        return self._ranked()(min(self.count - 1, int(share * self.count)))

    def _ranked(self) -> Callable[[int], float]:
        """What gives the value of a rank from 0."""
        ordered = [(-math.exp((i + 0.5) * _GROWTH), self.below[i]) for i in sorted(self.below, reverse=True)]
        ordered += [(0.0, self.zeros)] if self.zeros else []
        ordered += [(math.exp((i + 0.5) * _GROWTH), self.counts[i]) for i in sorted(self.counts)]
        values = np.clip(np.array([value for value, _ in ordered]), self.low, self.high)
        ends = np.cumsum([n for _, n in ordered])

        def at(rank: int) -> float:
            return float(values[np.searchsorted(ends, rank, side="right")])

        return at


def _tally(counts: dict[int, int], values: Floats) -> None:
    """Count positive values by bucket."""
    if not len(values):
        return
    numbers = np.log(values)
    numbers /= _GROWTH
    buckets = np.floor(numbers, out=numbers).astype(np.int64)
    least = int(buckets.min())
    buckets -= least
    found = np.bincount(buckets)  # at most 700,000 long, of floats as far apart as can be; sorting took twice the time
    filled = np.flatnonzero(found)
    for i, n in zip((filled + least).tolist(), found[filled].tolist(), strict=True):
        counts[i] = counts.get(i, 0) + n


class Fold:
    """One metric's values in one phase.  *path* is where they go beyond IN_MEMORY; *listed*: elements of lists."""

    def __init__(self, path: Path, *, listed: bool = False) -> None:
        self._path = path
        self.listed = listed
        self._held: list[Floats] = []
        self._held_count = 0
        self.count = 0
        self.buckets: Buckets | None = None

    def add(self, values: Floats) -> None:
        """Take values in base units; what isn't finite is absent."""
        values = values[np.isfinite(values)]
        if not len(values):
            return
        self.count += len(values)
        if self.buckets is not None:
            self.buckets.add(values)
            return
        self._held.append(values)
        self._held_count += len(values)
        if self.listed and self.count > BUDGET:
            self.buckets = Buckets()
            for block in self.blocks():
                self.buckets.add(block)
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

    def blocks(self) -> Iterator[Floats]:
        """All values that are kept exactly, in no particular order, some at a time."""
        if self._path.exists():
            with self._path.open("rb") as file:
                while len(block := np.fromfile(file, dtype=np.float64, count=_BLOCK)):
                    yield block
        yield from self._held

    def values(self) -> Floats:
        """The same at once; the caller's own array."""
        stored: Floats = np.fromfile(self._path, dtype=np.float64) if self._path.exists() else np.empty(0)
        return np.concatenate([stored, *self._held]) if self._held else stored

    def dump(self) -> bytes:
        """The fold's state; its values are in the file."""
        self.spill()
        return msgspec.msgpack.encode((str(self._path), self.listed, self.count, self.buckets))

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
        # By the count of all together, so that how many reducers there were changes no number.
        listed = any(fold.listed for fold in folds)
        self._bucketed = any(fold.buckets is not None for fold in folds) or (listed and self.count > BUDGET)
        self._buckets: Buckets | None = None
        self._sum: float | None = None

    def _merged(self) -> Buckets:
        if self._buckets is None:
            self._buckets = Buckets()
            for fold in self._folds:
                if fold.buckets is not None:
                    self._buckets.merge(fold.buckets)
                    continue
                for block in fold.blocks():
                    self._buckets.add(block)
        return self._buckets

    def sum(self) -> float | None:
        """Exact sum in base units, rounded once; None where there are no values."""
        if not self.count:
            return None
        if self._sum is None:
            if self._bucketed:
                self._sum = float(self._merged().sum)
            else:
                self._sum = float(sum((_exactly(block) for fold in self._folds for block in fold.blocks()), Fraction()))
        return self._sum

    def values(self) -> Floats:
        """All values, where they are kept exactly, in ascending order."""
        parts = [fold.values() for fold in self._folds]
        values: Floats = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])
        values.sort()
        return values

    def least(self) -> float | None:
        if self._bucketed:
            return self._merged().low
        return min((float(block.min()) for fold in self._folds for block in fold.blocks()), default=None)

    def most(self) -> float | None:
        if self._bucketed:
            return self._merged().high
        return max((float(block.max()) for fold in self._folds for block in fold.blocks()), default=None)

    def statistics(self, scale: float) -> dict[str, float] | None:
        """Every statistic in the display unit (*scale* times the base unit); None where there are no values."""
        if not self.count:
            return None
        return self._merged().statistics(scale) if self._bucketed else statistics(self.values(), scale)

    def adjusted(self, failed: int, scale: float) -> dict[str, float] | None:
        """The same with *failed* values more that are infinite; None of what isn't kept exactly."""
        return None if self._bucketed else adjusted(self.values(), failed, scale)


class Part:
    """A part of one metric's values, reckoned at once so that they needn't be kept; answers like :class:`Merged`."""

    def __init__(self, values: Floats | Buckets, scale: float, failed: int) -> None:
        """*values*: ascending, or as buckets; some.  *failed*: values more that are infinite, for ``adjusted``."""
        self._adjusted: dict[str, float] | None = None
        if isinstance(values, Buckets):
            self.count, self._sum, self._ends = values.count, float(values.sum), (values.low, values.high)
            self._statistics = values.statistics(scale)
        else:
            self.count, self._sum = len(values), float(_exactly(values))
            self._ends = float(values[0]), float(values[-1])
            self._statistics = statistics(values, scale)
            if failed:
                self._adjusted = adjusted(values, failed, scale)

    def sum(self) -> float | None:
        return self._sum

    def least(self) -> float | None:
        return self._ends[0]

    def most(self) -> float | None:
        return self._ends[1]

    def statistics(self, scale: float) -> dict[str, float] | None:
        return self._statistics

    def adjusted(self, failed: int, scale: float) -> dict[str, float] | None:
        return self._adjusted


def statistics(ordered: Floats, scale: float = 1.0) -> dict[str, float]:
    """Statistics of ascending values: linear percentiles (R type 7), population standard deviation, exact sums."""
    n = len(ordered)
    total = _exactly(ordered)
    mean = float(total / n)
    blocks = (ordered[at : at + _BLOCK] for at in range(0, n, _BLOCK))
    spread = math.sqrt(_fsum((block - mean) ** 2 for block in blocks) / n) if n > 1 else 0.0

    def at(rank: int) -> float:
        return float(ordered[rank])

    percentiles = [_percentile(at, q, n) for q in PERCENTILES]
    return _shown(mean, at(0), at(n - 1), float(total), percentiles, spread, n, scale)


def adjusted(ordered: Floats, failed: int, scale: float) -> dict[str, float]:
    """Statistics of ascending values and *failed* infinite ones: failures as infinitely slow; what is infinite is left out.

    Percentiles by nearest rank, ties to even: between a value and infinity there is nothing.
    """
    count = len(ordered) + failed
    ranks = {f"p{q}": round(q / 100 * (count - 1)) for q in PERCENTILES}
    known = {"min": float(ordered[0])} if len(ordered) else {}
    known |= {name: float(ordered[rank]) for name, rank in ranks.items() if rank < len(ordered)}
    return {name: displayed(value, scale) for name, value in known.items()} | {"count": count}


def _percentile(at: Callable[[int], float], q: int, count: int) -> float:
    """Between the two values around rank q/100·(count - 1); *at* gives the value of a rank."""
    rank = q / 100 * (count - 1)
    low = math.floor(rank)
    below, above = at(low), at(min(low + 1, count - 1))
    return below + (rank - low) * (above - below)


def _fsum(blocks: Iterable[Floats]) -> float:
    return math.fsum(chain.from_iterable(block.tolist() for block in blocks))


def _shown(
    mean: float, low: float, high: float, total: float, percentiles: list[float], spread: float, count: int, scale: float
) -> dict[str, float]:
    shown = {"avg": mean, "min": low, "max": high, "sum": total}
    shown |= {f"p{q}": value for q, value in zip(PERCENTILES, percentiles, strict=True)}
    shown |= {"std": spread}
    return {name: displayed(value, scale) for name, value in shown.items()} | {"count": count}


def displayed(value: float, scale: float) -> float:
    """*value* times *scale*, rounded once where that is one over a whole number: 4,900,000 ns are 4.9 ms, and not
    4.8999999999999995."""
    inverse = float(round(1 / scale))
    return value / inverse if inverse >= 1 and 1 / inverse == scale else value * scale
