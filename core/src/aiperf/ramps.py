"""How limits and rates rise: the curves, and when a rising limit reaches each level."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from aiperf.rates import RateCurve

if TYPE_CHECKING:
    from aiperf.columns import Floats, Ints
    from aiperf.schedule import Ramp

_STEP_NS = 100_000_000
"""The reference's step; its rate ramps begin at the level of the first step, not at 0."""
_FEWEST_STEPS = 1000


def linear(x: Floats) -> Floats:
    """Evenly."""
    return x


def exponential(x: Floats) -> Floats:
    """Slowly at first: with the square of the time."""
    return x * x


def ramped_rate(ramp: Ramp, ramp_ns: int, rate: float) -> RateCurve:
    """A rate that rises over *ramp_ns* to *rate* (requests/s), and stays there.

    It begins at *rate* · 0.1 s / *ramp_ns*, and never above the target.
    """
    x, share = _sampled(ramp, ramp_ns)
    begin = rate * min(1.0, _STEP_NS / ramp_ns)
    return RateCurve(x * ramp_ns / 1e9, begin + (rate - begin) * share)


def levels_ns(ramp: Ramp, ramp_ns: int, target: int) -> Ints:
    """When a limit that is 1 at the phase's start reaches 2, 3, … *target*, in ns after it."""
    x, share = _sampled(ramp, ramp_ns)
    wanted = np.arange(1, target) / max(1, target - 1)
    after = np.searchsorted(share, wanted, side="left")
    part = (wanted - share[after - 1]) / (share[after] - share[after - 1])
    reached: Ints = np.rint((x[after - 1] + part * (x[after] - x[after - 1])) * ramp_ns).astype(np.int64)
    return reached


def _sampled(ramp: Ramp, ramp_ns: int) -> tuple[Floats, Floats]:
    """Shares of the time, and of the rise by then; straight lines in between are as good as the curve."""
    x = np.linspace(0.0, 1.0, max(_FEWEST_STEPS, math.ceil(ramp_ns / _STEP_NS)) + 1)
    return x, np.concatenate([[0.0], ramp(x)[1:-1], [1.0]])
