"""Statistics of values while they come: counts in logarithmic buckets, over all of them and over the last seconds.

The buckets are those of :class:`~aiperf_reducer_columns.statistics.fold.Buckets`, here in arrays: percentiles are within 0.1 %,
everything else is exact.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from aiperf.sdk.statistics import percentile_name
from msgspec import Struct, field

from aiperf_reducer_columns.statistics.described import Adjusted, displayed, ranked_statistics, sides_of
from aiperf_reducer_columns.statistics.exact_sum import Sum
from aiperf_reducer_columns.statistics.fold import GROWTH

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, Ints

_MARGIN = 64
"""Buckets that a histogram has ready on both sides of what it was asked for."""


class Piece(Struct, array_like=True):
    """Values of a short time.  index, number: int64 arrays as bytes: buckets of positive values, and their counts; below:
    likewise of negative ones."""

    index: bytes = b""
    number: bytes = b""
    below_index: bytes = b""
    below_number: bytes = b""
    zeros: int = 0
    count: int = 0
    sum: Sum = field(default_factory=Sum)
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    @classmethod
    def of(cls, values: Floats) -> Piece:
        """*values*: finite, at least one."""
        low, high = float(values.min()), float(values.max())
        total = Sum()
        total.add(values)
        positive = values if low > 0 else values[values > 0]
        below = values[values < 0] if low < 0 else values[:0]
        return cls(
            *_tallied(positive), *_tallied(-below), len(values) - len(positive) - len(below), len(values), total,
            float(np.square(values).sum()), low, high,
        )  # fmt: skip


def _tallied(values: Floats) -> tuple[bytes, bytes]:
    """Buckets of positive values, and their counts."""
    if not len(values):
        return b"", b""
    buckets = np.floor(np.log(values) / GROWTH).astype(np.int64)
    least = int(buckets.min())
    tally = np.bincount(buckets - least)
    filled = np.flatnonzero(tally)
    return (filled + least).tobytes(), tally[filled].astype(np.int64).tobytes()


class _Counts:
    """Counts by bucket, dense from the first to the last."""

    def __init__(self) -> None:
        self.base = 0
        self.counts: Ints = np.zeros(0, dtype=np.int64)

    def add(self, index: Ints, number: Ints, sign: int) -> None:
        if not len(index):
            return
        first, last = int(index[0]), int(index[-1])  # ascending
        if not len(self.counts):
            self.base, self.counts = first - _MARGIN, np.zeros(last - first + 2 * _MARGIN, dtype=np.int64)
        if first < self.base or last >= self.base + len(self.counts):
            begin = min(self.base, first - _MARGIN)
            grown = np.zeros(max(self.base + len(self.counts), last + _MARGIN) - begin, dtype=np.int64)
            grown[self.base - begin : self.base - begin + len(self.counts)] = self.counts
            self.base, self.counts = begin, grown
        self.counts[index - self.base] += sign * number

    def centre(self, at: int) -> float:
        """The middle of the bucket at this place in counts."""
        return math.exp((at + self.base + 0.5) * GROWTH)


class Histogram:
    """Values in buckets.  count, sum, low, high: exact."""

    def __init__(self) -> None:
        self._above, self._below = _Counts(), _Counts()
        self.zeros = self.count = 0
        self.squares = 0.0
        self.sum: int | Fraction = 0
        self.low, self.high = math.inf, -math.inf

    def add(self, piece: Piece, sign: int = 1) -> None:
        """Add a piece, or take it away (*sign* -1), which leaves the extremes as they are."""
        self._above.add(*_read(piece.index, piece.number), sign)
        self._below.add(*_read(piece.below_index, piece.below_number), sign)
        self.zeros += sign * piece.zeros
        self.count += sign * piece.count
        self.sum += sign * piece.sum.shortest()
        self.squares += sign * piece.squares
        if sign > 0:
            self.low, self.high = min(self.low, piece.low), max(self.high, piece.high)

    def join(self, other: Histogram) -> None:
        """Add all of another one."""
        for mine, theirs in ((self._above, other._above), (self._below, other._below)):
            at = np.flatnonzero(theirs.counts)
            mine.add(at + theirs.base, theirs.counts[at], 1)
        self.zeros += other.zeros
        self.count += other.count
        self.sum += other.sum
        self.squares += other.squares
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def ranked(self) -> Callable[[int], float]:
        """A function from a rank, from 0, to its value; there are values."""
        above, below, last = self._above, self._below, self.count - 1
        zero = len(below.counts)  # the place of zeros, behind the negative values
        counts = above.counts
        if zero or self.zeros:
            counts = np.concatenate([below.counts[::-1], [self.zeros], counts])
        else:
            zero = -1
        ends = np.cumsum(counts)

        def at(rank: int) -> float:
            if rank <= 0 or rank >= last:
                return self.low if rank <= 0 else self.high
            place = int(ends.searchsorted(rank, side="right"))
            if place == zero:
                return 0.0
            value = above.centre(place - zero - 1) if place > zero else -below.centre(zero - 1 - place)
            return min(max(value, self.low), self.high)

        return at

    def statistics(self, scale: float, percentiles: Sequence[float]) -> dict[str, float]:
        mean = self.sum / self.count
        spread = math.sqrt(max(0.0, self.squares / self.count - float(mean) * float(mean)))
        extent = (float(mean), self.low, self.high, float(self.sum))
        return ranked_statistics(self.ranked(), self.count, *extent, spread, scale, percentiles)


def _read(index: bytes, number: bytes) -> tuple[Ints, Ints]:
    return np.frombuffer(index, dtype=np.int64), np.frombuffer(number, dtype=np.int64)


class LatestValues(Histogram):
    """The latest values."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: deque[tuple[float, Piece]] = deque()

    def append(self, piece: Piece, at_s: float) -> None:
        self.add(piece)
        self._pieces.append((at_s, piece))

    def expire(self, before_s: float) -> None:
        """Forget what came until *before_s*."""
        expired = False
        while self._pieces and self._pieces[0][0] <= before_s:
            self.add(self._pieces.popleft()[1], -1)
            expired = True
        if expired:
            self.low = min((piece.low for _, piece in self._pieces), default=math.inf)
            self.high = max((piece.high for _, piece in self._pieces), default=-math.inf)


class LiveFold:
    """The values of one metric in one phase: all of them, and the recent ones.

    listed: elements of lists.  interval: those of the time between two lines of progress; None without lines.
    """

    def __init__(self, *, lined: bool = False) -> None:
        self.total, self.recent, self.listed = Histogram(), LatestValues(), False
        self.interval = LatestValues() if lined else None

    def add(self, piece: Piece, at_s: float) -> None:
        self.total.add(piece)
        self.recent.append(piece, at_s)
        if self.interval is not None:
            self.interval.append(piece, at_s)

    def expire(self, before_s: float, interval_s: float = 0.0) -> None:
        """Forget that what came *before_s* is recent, and what came until *interval_s* of the interval."""
        self.recent.expire(before_s)
        if self.interval is not None:
            self.interval.expire(interval_s)


class FoldView:
    """Histograms as one fold of a metric; answers like ``Merged``.

    *parts*: together all values.  *low*, *high*: these with their lower and upper bounds in place of estimates, and *slack*: by
    how much the sum may be off; None where all values are known.
    """

    def __init__(
        self, parts: Sequence[Histogram], percentiles: Sequence[float], *, listed: bool = False,
        bounds: tuple[Sequence[Histogram], Sequence[Histogram], float] | None = None,
    ) -> None:  # fmt: skip
        self.listed, self._percentiles, self._bounds = listed, percentiles, bounds
        self._whole = _joined(parts)
        self.count = self._whole.count

    def sum(self) -> float | None:
        return float(self._whole.sum) if self.count else None

    def least(self) -> float | None:
        return self._whole.low if self.count else None

    def most(self) -> float | None:
        return self._whole.high if self.count else None

    def statistics(self, scale: float) -> dict[str, float] | None:
        return self._whole.statistics(scale, self._percentiles) if self.count else None

    def bounds(self, scale: float) -> list[dict[str, float]]:
        if self._bounds is None or not self.count:
            return []
        low, high, slack = self._bounds
        sides = []
        for side in (low, high):
            stats = _joined(side).statistics(scale, self._percentiles)
            sides.append({name: value for name, value in stats.items() if name not in ("avg", "std", "count")})
        return sides_of(float(self._whole.sum), slack, self.count, sides, scale)

    def adjusted(self, failed: int, scale: float) -> Adjusted | None:
        """Statistics in which *failed* requests are infinitely slow, by nearest ranks, as those of exact values."""
        at, count = self._whole.ranked(), self.count + failed
        ranks = {percentile_name(q): round(q / 100 * (count - 1)) for q in self._percentiles}
        known = {"min": self._whole.low} if self.count else {}
        known |= {name: at(rank) for name, rank in ranks.items() if rank < self.count}
        return {name: displayed(value, scale) for name, value in known.items()} | {"count": count}, []


def _joined(parts: Sequence[Histogram]) -> Histogram:
    if len(parts) == 1:
        return parts[0]
    whole = Histogram()
    for part in parts:
        whole.join(part)
    return whole
