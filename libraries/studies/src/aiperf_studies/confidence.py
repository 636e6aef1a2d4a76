"""What several values of one statistic say together: mean, deviation, interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from aiperf_studies.student import student_quantile


class Confidence(Struct, frozen=True):
    """The values of a statistic over the runs of a cell, at least one.

    mean: arithmetic.  std: sample standard deviation (n - 1); 0 of one value, as are se and cv.  se: std / √n.
    cv: std / |mean|; infinite where the mean is 0.  ci_low, ci_high: mean ∓ t · se, not clipped.
    t_critical: Student's quantile at (1 + level) / 2 with n - 1 degrees of freedom; None of one value.
    """

    mean: float
    std: float
    min: float
    max: float
    cv: float
    se: float
    ci_low: float
    ci_high: float
    t_critical: float | None
    unit: str = ""

    @property
    def width(self) -> float:
        """The interval's width as a share of |mean|: what the mode ``ci_width`` compares.  Infinite of a mean of 0."""
        return _share(self.ci_high - self.ci_low, self.mean)


def confidence(values: Sequence[float], level: float, unit: str = "") -> Confidence:
    """The row of these values; *level* is in (0, 1).  Its numbers don't depend on the order of the values.

    Raises:
        ValueError: There is no value.
    """
    count = len(values)
    if not count:
        raise ValueError("there is no value: no run succeeded")
    least, most = min(values), max(values)
    mean = min(max(math.fsum(values) / count, least), most)
    if count == 1:
        return Confidence(mean, 0.0, least, most, 0.0, 0.0, mean, mean, None, unit)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    se = std / math.sqrt(count)
    t = student_quantile((1 + level) / 2, count - 1)
    return Confidence(mean, std, least, most, _share(std, mean), se, mean - t * se, mean + t * se, t, unit)


def _share(part: float, mean: float) -> float:
    return math.inf if mean == 0 else part / abs(mean)
