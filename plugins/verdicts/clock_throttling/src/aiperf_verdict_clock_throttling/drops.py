"""Drops in a series of clocks, told from its noise."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from aiperf.sdk.columns import Floats
from msgspec import Struct

LEAST_DROP = 0.05
"""Share of the usual clock; a smaller drop is not spoken of."""
LEAST_S = 1.0
ALPHA = 0.001
"""The probability of a drop in noise, of all looks of a run together."""
_ALLOWANCES = (LEAST_DROP / 2, LEAST_DROP)
"""For drops of twice as much: the first sees a small one in a steady clock, the second one of a tenth in a noisy one."""
_BLOCK_S = 2.0
_HIGH_SHARE = 0.1
"""Part of the time with a higher clock from which on that one is the usual clock."""
_KEPT = 0.8
"""The part of squared differences, the smallest, that counts as noise: a drop makes large ones at both of its edges."""
_EDGES = 4
"""Blocks around the edges of a drop: at least the differences of so many are left out, and half of all at most."""
_FEWEST_BLOCKS = 12
_FEWEST_SAMPLES = 12
_GLITCH = 5.0
"""A sample is one that is so many times further from its neighbours than samples are in the median."""


class ClockDrop(Struct, frozen=True):
    """Samples *first* to *last* (its number included) in which the clock was lower by *share*, for *seconds*."""

    first: int
    last: int
    share: float
    seconds: float


class ClockDrops(Struct, frozen=True):
    usual: float
    """The clock that the GPU has otherwise."""
    drops: tuple[ClockDrop, ...]

    @property
    def seconds(self) -> float:
        return sum(drop.seconds for drop in self.drops)

    @property
    def share(self) -> float:
        """The mean drop, by time."""
        return sum(drop.share * drop.seconds for drop in self.drops) / self.seconds if self.drops else 0.0


def drops(at_s: Floats, clock: Floats, samples: int) -> ClockDrops:
    """The drops of one GPU's clock.  *at_s*: ascending.  *samples*: of all GPUs that are looked at."""
    if len(clock) < _FEWEST_SAMPLES:
        return ClockDrops(float(np.median(clock)) if len(clock) else math.nan, ())
    interval_s, clock = float(np.median(np.diff(at_s))), _without_glitches(clock)
    usual = float(np.median(clock))
    rises = _excursions(at_s, clock / usual - 1, interval_s, samples)
    high = np.zeros(len(clock), dtype=bool)
    for rise in rises:
        high[rise.first : rise.last + 1] = True
    if high.mean() >= _HIGH_SHARE:
        usual = float(np.median(clock[high]))
    return ClockDrops(usual, _excursions(at_s, 1 - clock / usual, interval_s, samples))


def _excursions(at_s: Floats, below: Floats, interval_s: float, samples: int) -> tuple[ClockDrop, ...]:
    """The parts in which *below*, a share, is larger than noise lets it be: by the allowance that finds more."""
    block = max(3, min(round(_BLOCK_S / interval_s), len(below) // _FEWEST_BLOCKS))
    variance = _long_run_variance(below, block)
    looks = math.log(len(_ALLOWANCES) * samples / ALPHA)
    found = [_beyond(at_s, below, interval_s, each, variance * looks / (2 * each)) for each in _ALLOWANCES]
    return max(found, key=lambda drops: sum(drop.share * drop.seconds for drop in drops))


def _beyond(at_s: Floats, below: Floats, interval_s: float, allowance: float, limit: float) -> tuple[ClockDrop, ...]:
    """The excursions of the sum of *below* less the allowance that go beyond the limit."""
    found: list[ClockDrop] = []
    first, best, highest, sum_now = 0, -1, 0.0, 0.0
    for place, value in enumerate([*below.tolist(), -math.inf]):
        if sum_now <= 0:
            first, best, highest, sum_now = place, -1, 0.0, 0.0
        sum_now += value - allowance
        if sum_now > highest:
            highest, best = sum_now, place
        if sum_now <= 0 and best >= first and highest > limit:
            found += _drop(at_s, below, first, best, interval_s)
    return tuple(found)


def _drop(at_s: Floats, below: Floats, first: int, last: int, interval_s: float) -> list[ClockDrop]:
    share, seconds = float(below[first : last + 1].mean()), float(at_s[last] - at_s[first]) + interval_s
    seconds = min(seconds, (last - first + 1) * 2 * interval_s)  # times in which nothing was sampled are not counted
    return [ClockDrop(first, last, share, seconds)] if share >= LEAST_DROP and seconds >= LEAST_S and last > first else []


def _long_run_variance(values: Floats, block: int) -> float:
    """The variance of a mean of many values, times their number."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    means = (sums[block:] - sums[:-block]) / block
    squares = np.sort((means[block:] - means[:-block]) ** 2)
    most = len(squares)
    kept = min(math.ceil(_KEPT * most), max(math.ceil(most / 2), most - _EDGES * block))
    return block * float(squares[:kept].mean()) / (2 * _mean_of_smallest(kept / most))


def _mean_of_smallest(part: float) -> float:
    """The mean of the smallest *part* of the squares of standard normal numbers."""
    normal = NormalDist()
    z = normal.inv_cdf((1 + part) / 2)
    return (part - 2 * z * normal.pdf(z)) / part


def _without_glitches(values: Floats) -> Floats:
    """Values that stick out replaced by the median of themselves and their neighbours: one sample tells nothing of a second."""
    around = np.stack((np.append(values[0], values[:-1]), values, np.append(values[1:], values[-1])))
    medians: Floats = np.median(around, axis=0)
    apart = np.abs(values - medians)
    return np.where(apart > _GLITCH * max(float(np.median(apart[apart > 0])) if apart.any() else 0.0, 1e-9), medians, values)
