"""The Kolmogorov-Smirnov test of two samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_EXACT = 1000
"""The size of the larger sample up to which the p value is exact; it takes a multiple of the product of the sizes."""


def ks_distance(first: ArrayLike, second: ArrayLike) -> float:
    """The largest distance between the two empirical distribution functions, 0 to 1.

    Raises:
        ValueError: A sample is empty.
    """
    a, b = (np.sort(np.asarray(each, dtype=np.float64)) for each in (first, second))
    if not len(a) or not len(b):
        raise ValueError("a sample is empty")
    every = np.concatenate([a, b])
    shares = np.searchsorted(a, every, side="right") / len(a) - np.searchsorted(b, every, side="right") / len(b)
    return float(np.max(np.abs(shares)))


def ks_p_value(first: ArrayLike, second: ArrayLike) -> float:
    """The probability of a distance at least as large between samples of one continuous distribution.

    It is exact for samples of up to 1,000, and that of the limit distribution with Stephens' correction above.  A large value
    doesn't show that the distributions are equal: of few or noisy values it is large whatever they are.

    Raises:
        ValueError: A sample is empty.
    """
    n, m = np.size(first), np.size(second)
    distance = ks_distance(first, second)
    return _exact(distance, n, m) if max(n, m) <= _EXACT else _limit(distance, n, m)


def _exact(distance: float, n: int, m: int) -> float:
    """The share of the orders of n and m values whose distance is at least this one.

    Hodges (1958): a path from (0, 0) to (n, m) is one order; (i, j) is left out where |i/n - j/m| reaches the distance.  Paths
    are counted diagonal by diagonal, each as a share of all paths to its points, so that no number overflows.
    """
    bound = round(distance * n * m) - 0.5  # distances are multiples of 1 / (n · m)
    inside = np.ones(1)  # of the diagonal i + j = total, by i from *first*: the share of paths that never left
    first = 0
    for total in range(1, n + m + 1):
        low, high = max(0, total - m), min(n, total)
        i = np.arange(low, high + 1)
        from_below = np.zeros(len(i))  # the last step took the first sample's next value: from (i - 1, j)
        from_left = np.zeros(len(i))  # ... the second sample's: from (i, j - 1)
        reached = (i - 1 >= first) & (i - 1 < first + len(inside))
        from_below[reached] = inside[i[reached] - 1 - first]
        reached = (i >= first) & (i < first + len(inside))
        from_left[reached] = inside[i[reached] - first]
        inside = from_below * (i / total) + from_left * ((total - i) / total)
        inside[np.abs(i * m - (total - i) * n) > bound] = 0.0
        first = low
    return float(min(1.0, max(0.0, 1.0 - inside[0])))


def _limit(distance: float, n: int, m: int) -> float:
    """Kolmogorov's limit distribution at Stephens' (1970) argument."""
    root = math.sqrt(n * m / (n + m))
    x = (root + 0.12 + 0.11 / root) * distance
    if x < 0.2:  # the series of the complement converges slowly, and is 1 to twelve digits
        return 1.0
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, math.fsum(terms)))
