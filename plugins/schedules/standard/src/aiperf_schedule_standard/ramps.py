"""Ramps, and rates that change over time: the times at which they make arrivals due."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from aiperf.sdk.columns import Floats
from aiperf.sdk.ramp import Ramp, ramp_points

_STEP_NS = 100_000_000
"""The reference's step; its rate ramps begin at the level of the first step, not at 0."""


class RateCurve:
    """Requests/s at points in time, linear in between; the first rate applies before the points, the last after them.

    The expected number of arrivals by a time is the integral, and an arrival is due when that has reached the running sum of
    its gaps in units of the mean gap.  So every pattern keeps its shape and its mean under any rate
    (*operational time*: Çınlar, Introduction to Stochastic Processes, 1975).
    """

    def __init__(self, at_s: Floats | Sequence[float], rates: Floats | Sequence[float]) -> None:
        """*at_s*: increasing, ≥ 0.  *rates*: one for each point, ≥ 0."""
        times, levels = np.asarray(at_s, dtype=np.float64), np.asarray(rates, dtype=np.float64)
        if times[0] > 0:
            times, levels = np.append(0.0, times), np.append(levels[0], levels)
        widths = np.diff(times)
        self._at_s, self._until_s, self._rate = times, np.append(times[1:], np.inf), levels
        self._slope = np.append(np.diff(levels) / widths, 0.0)
        self._begun = np.append(0.0, np.cumsum((levels[1:] + levels[:-1]) / 2 * widths))
        self._all = np.inf if levels[-1] > 0 else self._begun[-1]

    def due_ns(self, arrivals: Floats) -> Floats:
        """Times in ns at which the expected number of arrivals reaches each of *arrivals* (≥ 0, never decreasing).

        Shorter than *arrivals* where the rate ends at 0 before the last is reached.
        """
        wanted = arrivals[arrivals <= self._all]
        # The first piece that reaches the number: after a pause the piece before the pause.
        piece = np.maximum(np.searchsorted(self._begun, wanted, side="left") - 1, 0)
        more, rate = wanted - self._begun[piece], self._rate[piece]
        # rate * t + slope * t² / 2 = more, in the form that loses no digits where the slope is small.
        with_slope = np.sqrt(np.maximum(rate * rate + 2.0 * self._slope[piece] * more, 0.0))
        after_ns = np.divide(2e9 * more, rate + with_slope, out=np.zeros_like(more), where=more > 0)
        due_ns: Floats = np.minimum(self._at_s[piece] * 1e9 + after_ns, self._until_s[piece] * 1e9)
        return due_ns


def linear(x: Floats) -> Floats:
    """A constant slope."""
    return x


def exponential(x: Floats) -> Floats:
    """The square of the time: slow at first."""
    return x * x


def ramped_rate(ramp: Ramp, ramp_ns: int, rate: float) -> RateCurve:
    """A rate that rises over *ramp_ns* to *rate* (requests/s) and stays there.

    The rate begins at *rate* · 0.1 s / *ramp_ns*, and never above the target.
    """
    x, share = ramp_points(ramp, ramp_ns)
    begin = rate * min(1.0, _STEP_NS / ramp_ns)
    return RateCurve(x * ramp_ns / 1e9, begin + (rate - begin) * share)
