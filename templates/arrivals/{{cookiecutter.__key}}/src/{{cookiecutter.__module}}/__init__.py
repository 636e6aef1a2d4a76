"""The {{ cookiecutter.name }} arrival pattern: gaps drawn evenly from nothing to twice the mean."""

from __future__ import annotations

import numpy as np
from aiperf import uniforms
from numpy.typing import NDArray


def gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> NDArray[np.float64]:
    """The first *count* gaps of a block, in units of the mean gap; a function of the arguments alone."""
    return 2.0 * uniforms(seed, stream, block, count)
