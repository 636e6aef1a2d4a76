"""The {{ cookiecutter.name }} ramp: slowly at both ends, fast in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rise(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of the rise, 0 to 1, after shares *x* of the time, 0 to 1; it must begin at 0, end at 1 and never fall."""
    return x * x * (3.0 - 2.0 * x)
