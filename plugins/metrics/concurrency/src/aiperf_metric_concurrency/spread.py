"""Statistics of a value over time, gathered from pieces of the time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from aiperf.sdk.columns import Floats
from aiperf.sdk.statistics import percentile_name

from aiperf_metric_concurrency.curves import blocks_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PERCENTILES: tuple[float, ...] = (50, 90, 95, 99)
_NOISE = 1e-9
"""Share of the time by which a percentile may be missed: rounding errors of sums."""
MOST_VALUES = 131_072
"""Different values of several pieces together; more become buckets."""
_GROWTH = math.log(1.002)
_EDGES = 128
"""Groups of values between which percentiles are looked for."""


class Spread:
    """Values, each with the duration for which it holds.

    Mean, deviation and extremes are exact.  A percentile is the smallest value that is not exceeded for that share of the time:
    of one piece exactly; of several with more than MOST_VALUES different values the centre of a bucket, within 0.1 %.
    """

    def __init__(self) -> None:
        self._values, self._widths = np.empty(0), np.empty(0)
        self._pieces = 0
        self._whole = self._mean = self._squares = 0.0
        self._low, self._high = math.inf, -math.inf

    def add(self, values: Floats, widths: Floats) -> None:
        """Add a piece: its values, one or more, and their durations in ns.  Both arrays are the callee's from then on."""
        whole, blocks = float(widths.sum()), [*blocks_of(values)]
        mean = math.fsum(float((values[block] * widths[block]).sum()) for block in blocks) / whole
        squares = math.fsum(float((np.square(values[block] - mean) * widths[block]).sum()) for block in blocks)
        self._add_moments(whole, mean, squares)
        self._low, self._high = min(self._low, float(values.min())), max(self._high, float(values.max()))
        self._pieces += 1
        if self._pieces > 1:
            values, widths = np.concatenate([self._values, values]), np.concatenate([self._widths, widths])
            order = np.argsort(values, kind="stable")
            widths = widths[order]
            values = values[order]
            del order
            values, widths = _distinct(values, widths)
            if len(values) > MOST_VALUES:
                values, widths = _distinct(np.clip(_centres(values), self._low, self._high), widths)
        self._values, self._widths = values, widths

    def _add_moments(self, whole: float, mean: float, squares: float) -> None:
        """Add the duration, the mean, and the sum of squared distances from it (Chan, Golub and LeVeque 1979)."""
        if not self._pieces:
            self._whole, self._mean, self._squares = whole, mean, squares
            return
        both, distance = self._whole + whole, mean - self._mean
        self._squares += squares + distance * distance * self._whole * whole / both
        self._mean += distance * whole / both
        self._whole = both

    def statistics(self, further: Iterable[float] = ()) -> dict[str, float] | None:
        """None where nothing was added.  *further*: percentiles beside the usual ones."""
        if not self._pieces:
            return None
        asked = sorted({*_PERCENTILES, *further})
        percentiles = dict(zip(map(percentile_name, asked), self._percentiles(asked), strict=True))
        deviation = math.sqrt(self._squares / self._whole)
        return {"avg": self._mean, "min": self._low, "max": self._high} | percentiles | {"std": deviation}

    def _percentiles(self, asked: Iterable[float]) -> Iterator[float]:
        """Only values near a percentile are sorted: to sort two million takes 0.3 s, and to find those near takes 0.04 s."""
        values, widths = self._values, self._widths
        edges = np.unique(values[:: len(values) // _EDGES + 1])
        groups, whole = np.empty(len(values), dtype=np.int16), np.zeros(len(edges) + 1)
        for block in blocks_of(values):
            places = np.searchsorted(edges, values[block])
            groups[block] = places
            whole += np.bincount(places, widths[block], minlength=len(whole))
        ends = np.cumsum(whole)
        for percent in asked:
            wanted = (percent / 100 - _NOISE) * self._whole
            group = int(np.searchsorted(ends, wanted))
            near = groups == group
            order = np.argsort(found := values[near], kind="stable")
            reached = np.cumsum(widths[near][order]) + (ends[group - 1] if group else 0.0)
            yield float(found[order[min(int(np.searchsorted(reached, wanted)), len(order) - 1)]])


def _distinct(values: Floats, widths: Floats) -> tuple[Floats, Floats]:
    """Each of the ascending values once, with its whole duration."""
    first: NDArray[np.bool_] = np.append(True, values[1:] != values[:-1])
    return values[first], np.add.reduceat(widths, np.flatnonzero(first))


def _centres(values: Floats) -> Floats:
    """Positive values as the centres of buckets from 1.002^i to 1.002^(i + 1); others as they are."""
    positive = values > 0
    buckets = np.log(values, out=np.zeros(len(values)), where=positive)
    buckets /= _GROWTH
    np.floor(buckets, out=buckets)
    buckets += 0.5
    buckets *= _GROWTH
    return np.where(positive, np.exp(buckets, out=buckets), values)
