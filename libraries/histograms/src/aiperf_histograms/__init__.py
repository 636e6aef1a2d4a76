"""Percentiles of histograms with buckets: estimates with hard bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_BOUNDED = (50, 90, 95, 99)
"""Percentiles that come with the edges of their bucket."""
_STEPS = 60
"""Steps of the search, at most: regula falsi needs fewer."""
_STEEPEST = 700.0
"""The largest tilt over a bucket: its exponential is still a number."""
_NOISE = 1e-12
"""A share of the observations that comes from rounding."""
_UNIFORM = 1e-6
"""A tilt below this leaves the density of a bucket even."""


class _Bucket(NamedTuple):
    """The last bucket has no high edge; the mean of its observations is *mean*."""

    low: float
    high: float
    observed: float
    mean: float = 0.0


def of_histogram(bounds: Sequence[float], cumulative: Sequence[float], total: float) -> dict[str, float]:
    """``pNN_estimate``, and ``pNN_low`` and ``pNN_high``, the edges of that one's bucket (no high in the last bucket).

    The estimate has the largest entropy that the counts and the sum allow: in all buckets the density grows by one factor;
    where there are observations beyond the last bound, these get what the middles of the others leave of the sum.
    bounds: without the infinite one.  cumulative: observations up to each bound, all of them last.  total: their sum.
    """
    buckets = _buckets(bounds, cumulative, total)
    if not buckets:
        return {}
    tilt, found = 0.0 if buckets[-1].high == math.inf else _tilt(buckets, total), {}
    for percent in PERCENTILES:
        left = cumulative[-1] * percent / 100
        for bucket in buckets:
            if left <= bucket.observed:
                break
            left -= bucket.observed
        found[f"p{percent}_estimate"] = _within(bucket, min(1.0, left / bucket.observed), tilt)
        if percent in _BOUNDED:
            found[f"p{percent}_low"] = bucket.low
            if bucket.high < math.inf:
                found[f"p{percent}_high"] = bucket.high
    return found


def _buckets(bounds: Sequence[float], cumulative: Sequence[float], total: float) -> list[_Bucket]:
    """The buckets that have observations."""
    if not bounds or cumulative[-1] <= 0:
        return []
    none = cumulative[-1] * _NOISE
    lows, before = [min(0.0, bounds[0]), *bounds], [0.0, *cumulative]
    counts = [count - less for count, less in zip(cumulative, before, strict=False)]
    buckets = [_Bucket(*each) for each in zip(lows, bounds, counts, strict=False) if each[2] > none]
    if (beyond := counts[-1]) > none:
        last = bounds[-1]
        mean = (total - sum((low + high) / 2 * count for low, high, count, _ in buckets)) / beyond
        buckets.append(_Bucket(last, math.inf, beyond, mean if mean > last else last + abs(last) / 2))
    return buckets


def _tilt(buckets: Sequence[_Bucket], total: float) -> float:
    """The factor's logarithm, per unit of the values, with which the observations add up to *total*."""
    widest = max(high - low for low, high, *_ in buckets)
    least, most = (sum(edges[side] * edges.observed for edges in buckets) for side in (0, 1))
    if not widest:
        return 0.0
    low, high, under, over = -_STEEPEST / widest, _STEEPEST / widest, least - total, most - total
    if under >= 0 or over <= 0:  # all observations at the edges of their buckets
        return low if under >= 0 else high
    middle, side = 0.0, 0
    for _ in range(_STEPS):  # regula falsi; an edge that stays twice counts half (Illinois)
        error = sum(bucket.observed * _mean(bucket, middle) for bucket in buckets) - total
        if abs(error) <= 1e-9 * abs(total):
            break
        if error < 0:
            low, under, over, side = middle, error, over / (1 + (side < 0)), -1
        else:
            high, over, under, side = middle, error, under / (1 + (side > 0)), 1
        middle = (low * over - high * under) / (over - under)
    return middle


def _mean(bucket: _Bucket, tilt: float) -> float:
    low, high, *_ = bucket
    lean = tilt * (high - low)
    if abs(lean) < _UNIFORM:
        return (low + high) / 2
    return low - (high - low) * (1 / lean + 1 / math.expm1(-lean))


def _within(bucket: _Bucket, share: float, tilt: float) -> float:
    """The value below which *share* of the bucket's observations lie."""
    low, high, _, mean = bucket
    if high == math.inf:
        return low - (mean - low) * math.log1p(-min(share, 1 - 1e-12))
    lean = tilt * (high - low)
    if share == 1:
        return high
    if abs(lean) < _UNIFORM:
        return low + (high - low) * share
    if lean > 0:
        return high + math.log(share + (1 - share) * math.exp(-lean)) / tilt if share else low
    return low + math.log1p(share * math.expm1(lean)) / tilt


__all__ = ["PERCENTILES", "of_histogram"]
