"""A rate that changes over time, and when it has made so many arrivals due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from aiperf.columns import Floats


class RateCurve:
    """Requests/s at points in time, straight lines in between; the first rate holds before them and the last behind.

    The expected number of arrivals by a time is the integral, and an arrival is due when that has reached the running sum of
    its gaps in units of the mean gap.  So every pattern keeps its shape under any rate, and has the mean it should
    (*operational time*: Çınlar, Introduction to Stochastic Processes, 1975).
    """

    def __init__(self, at_s: Floats | Sequence[float], rates: Floats | Sequence[float]) -> None:
        """*at_s*: rising, from 0 or later.  *rates*: as many, none below 0."""
        times, levels = np.asarray(at_s, dtype=np.float64), np.asarray(rates, dtype=np.float64)
        if times[0] > 0:
            times, levels = np.append(0.0, times), np.append(levels[0], levels)
        widths = np.diff(times)
        self._at_s, self._until_s, self._rate = times, np.append(times[1:], np.inf), levels
        self._slope = np.append(np.diff(levels) / widths, 0.0)
        self._begun = np.append(0.0, np.cumsum((levels[1:] + levels[:-1]) / 2 * widths))
        self._all = np.inf if levels[-1] > 0 else self._begun[-1]

    def due_ns(self, arrivals: Floats) -> Floats:
        """When the expected number of arrivals reaches each of these (≥ 0, never decreasing), in ns.

        Fewer, where the rate ends at 0 and the rest is never reached.
        """
        wanted = arrivals[arrivals <= self._all]
        # The piece in which it is reached first: behind a pause the earlier one, which ends before it.
        piece = np.maximum(np.searchsorted(self._begun, wanted, side="left") - 1, 0)
        more, rate = wanted - self._begun[piece], self._rate[piece]
        # rate * t + slope * t² / 2 = more, solved so that nothing cancels where the slope is small.
        with_slope = np.sqrt(np.maximum(rate * rate + 2.0 * self._slope[piece] * more, 0.0))
        after_ns = np.divide(2e9 * more, rate + with_slope, out=np.zeros_like(more), where=more > 0)
        due_ns: Floats = np.minimum(self._at_s[piece] * 1e9 + after_ns, self._until_s[piece] * 1e9)
        return due_ns
