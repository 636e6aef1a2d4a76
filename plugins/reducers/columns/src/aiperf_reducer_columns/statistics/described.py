"""Statistics of values: of an array, or of whatever tells the value of a rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from aiperf.sdk.statistics import percentile_name

from aiperf_reducer_columns.statistics.exact_sum import exactly, squared_distances

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

PERCENTILES: Sequence[float] = (1, 5, 10, 25, 50, 75, 90, 95, 99)
"""Those of every distribution."""
Adjusted: TypeAlias = tuple[dict[str, float], list[dict[str, float]]]
"""Statistics in which failed requests count as infinitely slow, and their lower and upper bounds, if there are any."""
_FEW = 65_536
"""Values that are sorted; of more the ranks that are shown are put into their places."""


def sides_of(total: float, slack: float, count: int, sides: Sequence[dict[str, float]], scale: float) -> list[dict[str, float]]:
    """Both bounds of every statistic but the deviation: *sides*, and a sum that may be off by *slack*, with its mean.

    The sum lies between those of *sides*, too: each of their values bounds the value of its rank.
    """
    low, high = (side["sum"] for side in sides)
    known, least, most = (displayed(value, scale) for value in (total, total - slack, total + slack))
    sums = (min(known, max(low, least)), max(known, min(high, most)))
    return [side | {"avg": most / count, "sum": most} for side, most in zip(sides, sums, strict=True)]


def extent(values: Floats, scale: float, percentiles: Sequence[float]) -> dict[str, float]:
    """Statistics of values in any order, without mean and deviation."""
    at, count = _placed(values, percentiles), len(values)
    total = float(exactly(values))
    return extent_of(ranked_statistics(at, count, 0.0, at(0), at(count - 1), total, 0.0, scale, percentiles))


def extent_of(shown: dict[str, float]) -> dict[str, float]:
    """The statistics *shown* without mean and deviation."""
    return {name: value for name, value in shown.items() if name not in ("avg", "std", "count")}


def statistics(values: Floats, scale: float = 1.0, percentiles: Sequence[float] = PERCENTILES) -> dict[str, float]:
    """Statistics of values in any order: linear percentiles (R type 7), population standard deviation, exact sums."""
    at, count, total = _placed(values, percentiles), len(values), exactly(values)
    spread = math.sqrt(squared_distances(values, total) / count) if count > 1 else 0.0
    return ranked_statistics(at, count, float(total / count), at(0), at(count - 1), float(total), spread, scale, percentiles)


def _placed(values: Floats, percentiles: Sequence[float]) -> Callable[[int], float]:
    """The value of each rank that is shown; to sort millions takes three times as long as to put these in their places."""
    if len(values) <= _FEW:
        return np.sort(values).item
    return np.partition(values, sorted({*shown_ranks(len(values), percentiles)})).item


def shown_ranks(count: int, percentiles: Sequence[float]) -> Iterator[int]:
    """The ranks, from 0, of which :func:`ranked_statistics` needs the values; some more than once."""
    yield from (0, count - 1)
    for q in percentiles:
        rank = math.floor(q / 100 * (count - 1))
        yield from (rank, min(rank + 1, count - 1))


def adjusted_ranks(known: int, failed: int, percentiles: Sequence[float]) -> Iterator[int]:
    """The ranks of which :func:`adjusted` needs the values."""
    ranks = (round(q / 100 * (known + failed - 1)) for q in percentiles)
    yield from (rank for rank in (0, *ranks) if rank < known)


def adjusted(
    at: Callable[[int], float], known: int, failed: int, scale: float, percentiles: Sequence[float] = PERCENTILES
) -> dict[str, float]:
    """Statistics of *known* values and *failed* infinite ones: a failure counts as infinitely slow.  *at*: the value of a rank.

    Infinite statistics are left out.  Percentiles are those of the nearest rank, ties to even: nothing lies between a value and
    infinity.
    """
    count = known + failed
    ranks = {percentile_name(q): round(q / 100 * (count - 1)) for q in percentiles}
    shown = {"min": at(0)} if known else {}
    shown |= {name: at(rank) for name, rank in ranks.items() if rank < known}
    return {name: displayed(value, scale) for name, value in shown.items()} | {"count": count}


def ranked_statistics(
    at: Callable[[int], float], count: int, mean: float, low: float, high: float, total: float, spread: float, scale: float,
    percentiles: Sequence[float],
) -> dict[str, float]:  # fmt: skip
    """Every statistic, in display units; *at* gives the value of a rank."""
    shown = {"avg": mean, "min": low, "max": high, "sum": total}
    for q in percentiles:  # interpolated between the two values around rank q/100·(count - 1)
        rank = q / 100 * (count - 1)
        floor = math.floor(rank)
        below, above = at(floor), at(min(floor + 1, count - 1))
        shown[percentile_name(q)] = below + (rank - floor) * (above - below)
    shown["std"] = spread
    return {name: displayed(value, scale) for name, value in shown.items()} | {"count": count}


def displayed(value: float, scale: float) -> float:
    """*value* times *scale*, rounded once where 1/scale is a whole number: 4,900,000 ns are 4.9 ms, not 4.8999999999999995."""
    inverse = float(round(1 / scale))
    return value / inverse if inverse >= 1 and 1 / inverse == scale else value * scale
