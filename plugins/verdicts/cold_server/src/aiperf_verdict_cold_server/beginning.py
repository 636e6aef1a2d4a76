"""A slow beginning, told from the noise of what follows."""

from __future__ import annotations

import math

import numpy as np
from aiperf.sdk.columns import Floats
from msgspec import Struct
from numpy.typing import NDArray

LEAST_FACTOR = 1.2
"""A beginning that is less slow is not spoken of."""
ALPHA = 0.001
"""The probability of a slow beginning in noise, of all looks of a run together."""
EARLY_SHARE = 1 / 3
"""The part of the phase that may be a beginning: what follows is what that is compared with."""
_MOST_BLOCKS, _FEWEST_BLOCKS = 24, 5
"""Blocks of requests, and of these the later ones."""
_FEWEST_REQUESTS = 5
"""Requests of a block, and of the later ones under the same conditions."""
_LEAST_DEVIATION = 0.02
"""The deviation of blocks, in logs of times, is taken to be no smaller."""
_METRICS = 2
"""The first token, and the others."""


class SlowBeginning(Struct, frozen=True):
    """How long the beginning was slower, by what factor, and by how many deviations (t)."""

    until_s: float
    factor: float
    t: float


def slow_beginning(begun_s: Floats, times: Floats, cells: NDArray[np.int64], length_s: float) -> SlowBeginning | None:
    """The slow beginning of a phase of this length; None where there is none, or too little to tell.

    begun_s: ascending.  times: above 0, NaN where a request has none.
    """
    known = np.isfinite(times) & (times > 0)
    at_s, ratios = _ratios(begun_s[known], np.log(times[known]), cells[known], EARLY_SHARE * length_s)
    count = min(_MOST_BLOCKS, len(ratios) // _FEWEST_REQUESTS)
    if count <= _FEWEST_BLOCKS:
        return None
    blocks = np.arange(len(ratios)) * count // len(ratios)
    firsts = np.searchsorted(blocks, np.arange(count + 1))
    medians = np.array([np.median(each) for each in np.split(ratios, firsts[1:-1])])
    ends_s = np.append(at_s, length_s)[firsts[1:]]
    early = int((ends_s <= EARLY_SHARE * length_s).sum())
    usual = medians[at_s[firsts[:-1]] >= EARLY_SHARE * length_s]
    if not early or len(usual) < _FEWEST_BLOCKS:
        return None
    limit = _t_quantile(ALPHA / (_METRICS * early), len(usual) - 1)
    deviation = _deviation(usual)
    found = []
    for j in range(1, early + 1):
        gain = float(medians[:j].mean() - usual.mean())
        t = gain / (deviation * math.sqrt(1 / j + 1 / len(usual)))
        if t > limit:
            found.append((_fit(medians, j), j, gain, t))
    if not found:
        return None
    _, j, gain, t = min(found)
    return SlowBeginning(float(ends_s[j - 1]), math.exp(gain), t) if math.exp(gain) >= LEAST_FACTOR else None


def _deviation(medians: Floats) -> float:
    """The deviation of blocks, as much larger as their dependence on the block before makes that of a mean."""
    apart = medians - medians.mean()
    scale = float((apart**2).sum())
    follows = min(0.9, max(0.0, float((apart[1:] * apart[:-1]).sum()) / scale)) if scale else 0.0
    return max(_LEAST_DEVIATION, float(medians.std(ddof=1))) * math.sqrt((1 + follows) / (1 - follows))


def _ratios(begun_s: Floats, logs: Floats, cells: NDArray[np.int64], later_s: float) -> tuple[Floats, Floats]:
    """Begins, and logs over the median of later ones, of requests with five from *later_s* on under their conditions."""
    later = begun_s >= later_s
    if not later.any():
        return begun_s[:0], logs[:0]
    usual = np.full(int(cells.max()) + 1, np.nan)
    order = np.argsort(cells[later], kind="stable")
    numbers, firsts = np.unique(cells[later][order], return_index=True)
    for number, own in zip(numbers.tolist(), np.split(logs[later][order], firsts[1:]), strict=True):
        if len(own) >= _FEWEST_REQUESTS:
            usual[number] = np.median(own)
    matched = ~np.isnan(usual[cells])
    return begun_s[matched], (logs - usual[cells])[matched]


def _fit(medians: Floats, j: int) -> float:
    """The sum of squares around two levels, before and behind block *j*."""
    return float(((medians[:j] - medians[:j].mean()) ** 2).sum() + ((medians[j:] - medians[j:].mean()) ** 2).sum())


def _t_quantile(tail: float, freedom: int) -> float:
    """The value that Student's t exceeds with the probability *tail*, by bisection of its density's integral."""
    low, high = 0.0, 1.0
    while _t_tail(high, freedom) > tail:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_tail(middle, freedom) > tail else (low, middle)
    return high


def _t_tail(t: float, freedom: int) -> float:
    """The probability of more than *t*: finite sums of cosines (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom % 2:
        total, term = 0.0, cosine
        for k in range(1, freedom - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        inside = 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    else:
        total, term = 0.0, 1.0
        for k in range(0, freedom - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        inside = sine * total
    return (1 - inside) / 2
