"""The contract of ramps: how a limit or a rate grows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

_STEP_NS = 100_000_000
_FEWEST_STEPS = 1000
"""Steps of a ramp, however short it is."""


class Ramp(Protocol):
    """The growth of a limit or a rate: the share of its rise, 0 to 1, at a share *x* of its time, 0 to 1.

    Vectorised over *x*; never decreasing; 0 at 0 and 1 at 1.  A function of *x* alone.
    """

    def __call__(self, x: Floats) -> Floats: ...


def ramp_points(ramp: Ramp, ramp_ns: int) -> tuple[Floats, Floats]:
    """Points of a ramp that lasts *ramp_ns*: shares of the time and of the rise, close enough for linear interpolation."""
    import numpy as np

    x = np.linspace(0.0, 1.0, max(_FEWEST_STEPS, math.ceil(ramp_ns / _STEP_NS)) + 1)
    return x, np.concatenate([[0.0], ramp(x)[1:-1], [1.0]])


__all__ = ["Ramp", "ramp_points"]
